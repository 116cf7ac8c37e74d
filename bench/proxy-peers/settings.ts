/** The settings of nginx and haproxy: tuned for speed, with the same work as Berth's proxy, which looks up the token of a request. */

interface Settings {
  readonly port: number;
  readonly token: string;
  readonly backendPort: number;
}

const commonNginx = (folder: string) => [
  'daemon off;',
  'master_process off;',
  `pid ${folder}/pid;`,
  'worker_rlimit_nofile 20000;',
  'events { worker_connections 15000; }',
  'http {',
  'access_log off;',
  ...['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (each) => `${each}_temp_path ${folder}/temporary/${each};`,
  ),
  'keepalive_requests 100000000;',
  'client_max_body_size 0;',
  'map_hash_bucket_size 128;',
  'map $http_upgrade $connection_upgrade { default upgrade; "" ""; }',
];

/** The number of tokens of nginx and haproxy, in a hash table and in a tree: it hardly affects their speed. */
const tokenCount = 1_000;

/** The tokens of a table, ours among them. */
function table(token: string, value: string): string[] {
  return Array.from({ length: tokenCount }, (_, i) => `${i === 0 ? token : `${i}`.padEnd(token.length, '-')} ${value}`);
}

/** A reverse proxy that looks up tokens and keeps connections to the backend. It streams bodies, as Berth does. */
export function nginxSettings({ folder, port, token, backendPort }: Settings & { readonly folder: string }): string {
  return [
    ...commonNginx(folder),
    `map $token $backend { ${table(token, 'backend;').join(' ')} }`,
    `map $token $username { ${table(token, 'user;').join(' ')} }`,
    `map $token $secret { ${table(token, 'secret;').join(' ')} }`,
    `upstream backend { server 127.0.0.1:${backendPort}; keepalive 256; keepalive_requests 100000000; }`,
    `server { listen 127.0.0.1:${port} backlog=4096; location ~ "^/(?<token>[\\w-]{43})(?<rest>/.*)$" {`,
    'proxy_pass http://$backend$rest$is_args$args;',
    'proxy_http_version 1.1;',
    'proxy_request_buffering off;',
    'proxy_max_temp_file_size 0;',
    'proxy_set_header Connection $connection_upgrade;',
    'proxy_set_header Upgrade $http_upgrade;',
    'proxy_set_header Host $http_host;',
    'proxy_set_header X-Forwarded-For $remote_addr;',
    'proxy_set_header X-Forwarded-Proto $scheme;',
    'proxy_set_header X-Forwarded-Host $http_host;',
    'proxy_set_header X-Forwarded-Prefix /$token;',
    'proxy_set_header X-Verified-Username $username;',
    'proxy_set_header X-Verified-User-Data "";',
    'proxy_set_header X-Verified-Secret $secret;',
    'add_header Referrer-Policy same-origin;',
    '} } }',
    '',
  ].join('\n');
}

/** The backend: short answers from memory, files, and upgrades, which it forwards to the application. */
export function nginxBackendSettings({
  folder,
  port,
  applicationPort,
}: {
  readonly folder: string;
  readonly port: number;
  readonly applicationPort: number;
}): string {
  return [
    ...commonNginx(folder),
    'sendfile on;',
    'tcp_nopush on;',
    'open_file_cache max=100;',
    `server { listen 127.0.0.1:${port} backlog=4096; root ${folder};`,
    'location = /small { return 200 "Hello World\\n"; }',
    'location /application/ {',
    `proxy_pass http://127.0.0.1:${applicationPort};`,
    'proxy_http_version 1.1;',
    'proxy_request_buffering off;',
    'proxy_set_header Connection $connection_upgrade;',
    'proxy_set_header Upgrade $http_upgrade;',
    '}',
    '} }',
    '',
  ].join('\n');
}

/** haproxy looks up tokens in the file `users`, which it keeps in memory. */
export function haproxySettings({ port, backendPort, users }: Settings & { readonly users: string }): string {
  const set = [
    'x-forwarded-proto http',
    'x-forwarded-host %[req.hdr(host)]',
    'x-forwarded-prefix /%[var(txn.token)]',
    `x-verified-username %[var(txn.token),map_str(${users})]`,
    'x-verified-secret secret',
  ];
  return [
    'global',
    '  nbthread 1',
    '  maxconn 8000',
    '  tune.maxrewrite 4096',
    'defaults',
    '  mode http',
    '  option http-keep-alive',
    '  option forwardfor',
    '  http-reuse always',
    '  timeout connect 5s',
    '  timeout client 60s',
    '  timeout server 60s',
    '  timeout tunnel 60s',
    'frontend main',
    `  bind 127.0.0.1:${port} backlog 4096`,
    '  http-request del-header x-verified- -m beg',
    '  http-request set-var(txn.token) path,field(2,/)',
    ...set.map((header) => `  http-request set-header ${header}`),
    '  http-request replace-path /[^/]+/(.*) /\\1',
    '  http-response set-header referrer-policy same-origin',
    '  default_backend backend',
    'backend backend',
    `  server backend 127.0.0.1:${backendPort} pool-max-conn 256`,
    '',
  ].join('\n');
}

/** The file `users` of haproxy. */
export function haproxyUsers(token: string): string {
  return `${table(token, 'user').join('\n')}\n`;
}
