import { appendFileSync, createReadStream, existsSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, open, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { Readable } from "node:stream";
import { randomUUID } from "node:crypto";
// client/errors.ts
var BerthError = class extends Error {
	code;
	status;
	id;
	retryAfterMs;
	constructor(code, message, { status, id, retryAfterMs, cause } = {}) {
		super(message, cause === void 0 ? {} : { cause });
		this.name = "BerthError";
		this.code = code;
		this.status = status;
		this.id = id;
		this.retryAfterMs = retryAfterMs;
	}
};
async function errorOf(response) {
	const { status } = response;
	const retryAfterMs = retryAfter(response.headers.get("retry-after"));
	const reported = await reportedError(response);
	if (reported) {
		const { code, message, id } = reported;
		return new BerthError(code, message, {
			status,
			id,
			retryAfterMs
		});
	}
	return new BerthError("UnexpectedResponse", unexpected(status), {
		status,
		retryAfterMs
	});
}
async function reportedError(response) {
	const body = await response.json().catch(() => void 0);
	if (typeof body !== "object" || body === null || !("error" in body)) return void 0;
	const { error } = body;
	if (typeof error !== "object" || error === null) return void 0;
	const { code, message, id } = error;
	if (typeof code !== "string" || typeof message !== "string") return void 0;
	return {
		code,
		message,
		id: typeof id === "string" ? id : ""
	};
}
function unexpected(status) {
	return `The server answered with ${status === 0 ? "a redirect" : `HTTP status ${status}, which is not a response of Berth's API`}. Check the address of the API`;
}
function retryAfter(header) {
	if (header === null) return void 0;
	const ms = /^\d+$/.test(header) ? Number(header) * 1e3 : Date.parse(header) - Date.now();
	return Number.isNaN(ms) ? void 0 : Math.max(0, ms);
}
// client/changes.ts
async function sendChange(transport, name, input, { options: { signal, timeoutMs } = {}, doneBefore }) {
	let mayBeDone = false;
	try {
		await transport.json(name, input, {
			signal,
			timeoutMs,
			repeatable: true,
			onLost: () => mayBeDone = true
		});
	} catch (error) {
		if (!(mayBeDone && error instanceof BerthError && doneBefore.some((code) => code === error.code))) throw error;
	}
}
async function sendIdempotent(transport, name, input, { signal, timeoutMs } = {}) {
	return await transport.json(name, input, {
		signal,
		timeoutMs,
		repeatable: true
	});
}
// client/endpoint-group.ts
var EndpointGroup = class {
	transport;
	constructor(transport) {
		this.transport = transport;
	}
};
// client/accounts.ts
var Accounts = class extends EndpointGroup {
	list(options) {
		return this.transport.list("listAccounts", "accounts", { path: void 0 }, options);
	}
	async create(account, options) {
		const input = {
			path: void 0,
			body: account
		};
		await sendChange(this.transport, "createAccount", input, {
			options,
			doneBefore: ["AccountExists"]
		});
	}
	async members(account, options) {
		return (await this.transport.json("listMembers", { path: { account } }, options)).members;
	}
	async setMember(account, member, options) {
		await sendIdempotent(this.transport, "setMember", {
			path: { account },
			body: member
		}, options);
	}
	async removeMember(account, email, options) {
		const input = { path: {
			account,
			user_email: email
		} };
		await sendChange(this.transport, "removeMember", input, {
			options,
			doneBefore: ["UserNotFound"]
		});
	}
	async limits(account, options) {
		return await this.transport.json("accountLimits", { path: { account } }, options);
	}
	async setLimits(account, limits, options) {
		await sendIdempotent(this.transport, "setAccountLimits", {
			path: { account },
			body: limits
		}, options);
	}
	audit(account, options) {
		return this.transport.list("accountAudit", "records", { path: { account } }, options);
	}
	platformAudit(options) {
		return this.transport.list("platformAudit", "records", { path: void 0 }, options);
	}
};
var AccessTokens = class extends EndpointGroup {
	list(account, options) {
		return this.transport.list("listTokens", "tokens", { path: { account } }, options);
	}
	async create(account, token, options) {
		return await this.transport.json("createToken", {
			path: { account },
			body: token
		}, options);
	}
	async revoke(account, id, options) {
		const input = { path: {
			account,
			token_id: id
		} };
		await sendChange(this.transport, "revokeToken", input, {
			options,
			doneBefore: ["TokenNotFound"]
		});
	}
};
var TrustRules = class extends EndpointGroup {
	list(account, options) {
		return this.transport.list("listTrustRules", "rules", { path: { account } }, options);
	}
	async create(account, rule, options) {
		return await this.transport.json("createTrustRule", {
			path: { account },
			body: rule
		}, options);
	}
	async delete(account, id, options) {
		const input = { path: {
			account,
			rule_id: id
		} };
		await sendChange(this.transport, "deleteTrustRule", input, {
			options,
			doneBefore: ["TrustRuleNotFound"]
		});
	}
	async exchange(account, idToken, options) {
		return await this.transport.json("exchangeIdToken", {
			path: { account },
			body: { id_token: idToken }
		}, options);
	}
};
// client/time.ts
const longestTimerMs = 2 ** 31 - 1;
function newTimeLimit(message, signal) {
	const controller = new AbortController();
	let timer;
	const forward = () => controller.abort(signal?.reason);
	if (signal?.aborted) forward();
	signal?.addEventListener("abort", forward, { once: true });
	return {
		signal: controller.signal,
		restart: (limitMs) => {
			clearTimeout(timer);
			timer = setTimeout(() => controller.abort(new BerthError("TimedOut", message)), Math.min(limitMs, longestTimerMs));
		},
		pause: () => clearTimeout(timer),
		end: () => {
			clearTimeout(timer);
			signal?.removeEventListener("abort", forward);
		}
	};
}
async function wait(ms, signal) {
	signal?.throwIfAborted();
	await new Promise((resolve, reject) => {
		const onAbort = () => {
			clearTimeout(timer);
			reject(signal?.reason);
		};
		const timer = setTimeout(() => {
			signal?.removeEventListener("abort", onAbort);
			resolve();
		}, ms);
		signal?.addEventListener("abort", onAbort, { once: true });
	});
}
// client/contract.ts
const endpoints = {
	createToken: {
		method: "POST",
		path: "/v2/account/{account}/token",
		needsToken: true
	},
	listTokens: {
		method: "GET",
		path: "/v2/account/{account}/tokens",
		needsToken: true
	},
	revokeToken: {
		method: "POST",
		path: "/v2/account/{account}/token/{token_id}/revoke",
		needsToken: true
	},
	setUp: {
		method: "POST",
		path: "/v2/setup",
		needsToken: false
	},
	acceptInvitation: {
		method: "POST",
		path: "/v2/invitation",
		needsToken: false
	},
	logIn: {
		method: "POST",
		path: "/v2/session",
		needsToken: false
	},
	logOut: {
		method: "POST",
		path: "/user-session/{uuid}/delete",
		needsToken: true
	},
	listLogIns: {
		method: "GET",
		path: "/v2/user/logins",
		needsToken: true
	},
	logOutOthers: {
		method: "POST",
		path: "/v2/user/logins/end-others",
		needsToken: true
	},
	changePassword: {
		method: "POST",
		path: "/v2/user/password",
		needsToken: true
	},
	createUser: {
		method: "POST",
		path: "/v2/user",
		needsToken: true
	},
	listUsers: {
		method: "GET",
		path: "/v2/users",
		needsToken: true
	},
	inviteUser: {
		method: "POST",
		path: "/v2/user/{user_email}/invite",
		needsToken: true
	},
	updateUser: {
		method: "POST",
		path: "/v2/user/{user_email}/update",
		needsToken: true
	},
	createAccount: {
		method: "POST",
		path: "/v2/account",
		needsToken: true
	},
	listAccounts: {
		method: "GET",
		path: "/v2/accounts",
		needsToken: true
	},
	listMembers: {
		method: "GET",
		path: "/v2/account/{account}/members",
		needsToken: true
	},
	setMember: {
		method: "POST",
		path: "/v2/account/{account}/member",
		needsToken: true
	},
	removeMember: {
		method: "POST",
		path: "/v2/account/{account}/member/{user_email}/remove",
		needsToken: true
	},
	beginCliLogin: {
		method: "POST",
		path: "/cli-login",
		needsToken: false
	},
	cliLoginStatus: {
		method: "GET",
		path: "/cli-login/{token}/status/stream",
		needsToken: false
	},
	completeCliLogin: {
		method: "POST",
		path: "/cli-login/{token}/complete",
		needsToken: false
	},
	accountLimits: {
		method: "GET",
		path: "/v2/account/{account}/limits",
		needsToken: true
	},
	setAccountLimits: {
		method: "POST",
		path: "/v2/account/{account}/limits",
		needsToken: true
	},
	accountAudit: {
		method: "GET",
		path: "/v2/account/{account}/audit",
		needsToken: true
	},
	platformAudit: {
		method: "GET",
		path: "/v2/audit",
		needsToken: true
	},
	createTrustRule: {
		method: "POST",
		path: "/v2/account/{account}/trust",
		needsToken: true
	},
	listTrustRules: {
		method: "GET",
		path: "/v2/account/{account}/trusts",
		needsToken: true
	},
	deleteTrustRule: {
		method: "POST",
		path: "/v2/account/{account}/trust/{rule_id}/delete",
		needsToken: true
	},
	exchangeIdToken: {
		method: "POST",
		path: "/v2/account/{account}/oidc-token",
		needsToken: false
	},
	listNodes: {
		method: "GET",
		path: "/v2/nodes",
		needsToken: true
	},
	drainNode: {
		method: "POST",
		path: "/v2/node/{node}/drain",
		needsToken: true
	},
	undrainNode: {
		method: "POST",
		path: "/v2/node/{node}/undrain",
		needsToken: true
	},
	connect: {
		method: "POST",
		path: "/v2/service/{account}/{service}/connect",
		needsToken: true
	},
	connectEnvironment: {
		method: "POST",
		path: "/v2/service/{account}/{service}/{environment}/connect",
		needsToken: true
	},
	backendStatus: {
		method: "GET",
		path: "/v2/backend/{backend_id}/status",
		needsToken: false
	},
	backendStatusStream: {
		method: "GET",
		path: "/v2/backend/{backend_id}/status/stream",
		needsToken: false
	},
	backend: {
		method: "GET",
		path: "/v2/backend/{backend_id}",
		needsToken: true
	},
	backendLogs: {
		method: "GET",
		path: "/v2/backend/{backend_id}/logs/stream",
		needsToken: true
	},
	backendMetrics: {
		method: "GET",
		path: "/v2/backend/{backend_id}/metrics/stream",
		needsToken: true
	},
	backendTraffic: {
		method: "GET",
		path: "/v2/backend/{backend_id}/traffic",
		needsToken: true
	},
	terminate: {
		method: "POST",
		path: "/v2/backend/{backend_id}/terminate",
		needsToken: true
	},
	serviceBackends: {
		method: "GET",
		path: "/v2/service/{account}/{service}/backends",
		needsToken: true
	},
	accountBackends: {
		method: "GET",
		path: "/v2/account/{account}/backends",
		needsToken: true
	},
	createService: {
		method: "POST",
		path: "/v2/account/{account}/service",
		needsToken: true
	},
	listServices: {
		method: "GET",
		path: "/v2/account/{account}/services",
		needsToken: true
	},
	service: {
		method: "GET",
		path: "/v2/service/{account}/{service}",
		needsToken: true
	},
	serviceImages: {
		method: "GET",
		path: "/v2/service/{account}/{service}/images",
		needsToken: true
	},
	uploadImage: {
		method: "POST",
		path: "/v2/service/{account}/{service}/images",
		needsToken: true
	},
	imageArchive: {
		method: "GET",
		path: "/v2/service/{account}/{service}/images/{digest}/archive",
		needsToken: true
	},
	update: {
		method: "POST",
		path: "/v2/service/{account}/{service}/update",
		needsToken: true
	},
	updateEnvironment: {
		method: "POST",
		path: "/v2/service/{account}/{service}/{environment}/update",
		needsToken: true
	},
	deleteService: {
		method: "POST",
		path: "/v2/service/{account}/{service}/delete",
		needsToken: true
	},
	environments: {
		method: "GET",
		path: "/v2/service/{account}/{service}/environments",
		needsToken: true
	},
	createEnvironment: {
		method: "POST",
		path: "/v2/service/{account}/{service}/environments",
		needsToken: true
	},
	deleteEnvironment: {
		method: "POST",
		path: "/v2/service/{account}/{service}/{environment}/delete",
		needsToken: true
	},
	serviceSettings: {
		method: "GET",
		path: "/v2/service/{account}/{service}/settings",
		needsToken: true
	},
	changeServiceSettings: {
		method: "POST",
		path: "/v2/service/{account}/{service}/settings",
		needsToken: true
	},
	visibility: {
		method: "GET",
		path: "/v2/service/{account}/{service}/visibility",
		needsToken: true
	},
	setVisibility: {
		method: "POST",
		path: "/v2/service/{account}/{service}/visibility",
		needsToken: true
	},
	imageName: {
		method: "GET",
		path: "/service/{account}/{service}/image-name",
		needsToken: true
	},
	terminateBackends: {
		method: "POST",
		path: "/service/{account}/{service}/terminate-backends",
		needsToken: true
	},
	earliestCreateSpawnToken: {
		method: "POST",
		path: "/user/{account}/service/{service}/token",
		needsToken: true
	},
	earliestTokenSpawn: {
		method: "POST",
		path: "/token/{token}/spawn",
		needsToken: false
	},
	earliestRevokeSpawnToken: {
		method: "DELETE",
		path: "/token/{token}",
		needsToken: true
	}
};
// client/transport.ts
const longestDelayMs$1 = 1e4;
const longestRetryAfterMs = 6e4;
var Transport = class {
	#url;
	#token;
	#fetch;
	timeoutMs;
	retries;
	#retryDelayMs;
	constructor(options) {
		this.#url = checkedUrl(options.url);
		this.#token = checkedToken(options.token);
		this.#fetch = options.fetch ?? ((input, init) => fetch(input, init));
		this.timeoutMs = options.timeoutMs ?? 3e4;
		this.retries = options.retries ?? 5;
		this.#retryDelayMs = options.retryDelayMs ?? 250;
	}
	async json(name, input, { signal, timeoutMs = this.timeoutMs, repeatable = endpoints[name].method === "GET", onLost } = {}) {
		const prepared = this.prepare(name, input);
		for (let attempt = 1;; attempt += 1) {
			const limit = newTimeLimit(`No response within ${timeoutMs} ms`, signal);
			try {
				limit.restart(timeoutMs);
				return await readJson(await this.send(prepared, limit.signal));
			} catch (error) {
				signal?.throwIfAborted();
				const problem = problemOf(error, limit.signal);
				if (!(isTemporary(problem) && (repeatable || isRejected(problem))) || attempt > this.retries) throw problem;
				if (!isRejected(problem)) onLost?.();
				await wait((problem.retryAfterMs ?? 0) + this.backOffMs(attempt), signal);
			} finally {
				limit.end();
			}
		}
	}
	async *list(name, field, { path, query }, { pageSize, signal, timeoutMs } = {}) {
		let cursor;
		do {
			const input = {
				path,
				query: {
					...query,
					limit: pageSize,
					cursor
				}
			};
			const page = await this.json(name, input, {
				signal,
				timeoutMs
			});
			yield* page[field];
			cursor = page.next_cursor;
		} while (cursor !== void 0);
	}
	prepare(name, { path, query, body }) {
		const { method, needsToken, path: template } = endpoints[name];
		return {
			url: this.#url + filledPath(template, path ?? {}) + queryText(query),
			method,
			headers: {
				accept: "application/json",
				...body !== void 0 && { "content-type": "application/json" },
				...needsToken && this.#token !== void 0 && { authorization: `Bearer ${this.#token}` }
			},
			...body !== void 0 && { body: JSON.stringify(body) }
		};
	}
	async send({ url, ...request }, signal) {
		const response = await this.#fetch(url, {
			...request,
			redirect: "manual",
			signal: signal ?? null
		});
		if (!response.ok) throw await errorOf(response);
		return response;
	}
	backOffMs(failures, firstMs = this.#retryDelayMs) {
		const doubledMs = firstMs * 2 ** Math.max(0, failures - 1);
		return Math.min(longestDelayMs$1, doubledMs) * (.5 + Math.random() / 2);
	}
};
function problemOf(error, limit) {
	if (limit?.reason instanceof BerthError) return limit.reason;
	if (error instanceof BerthError) return error;
	return new BerthError("Unreachable", "No response from the API. Check the address and the network", { cause: error });
}
function isRejected({ status, retryAfterMs }) {
	return (status === 429 || status === 503) && retryAfterMs !== void 0;
}
function isTemporary({ code, status, retryAfterMs = 0 }) {
	if (retryAfterMs > longestRetryAfterMs) return false;
	return code === "Unreachable" || code === "TimedOut" || status !== void 0 && temporary.has(status);
}
const temporary = /* @__PURE__ */ new Set([
	408,
	429,
	502,
	503,
	504
]);
async function readJson(response) {
	if (!/^application\/json\b/.test(response.headers.get("content-type") ?? "")) throw new BerthError("UnexpectedResponse", "The response is not JSON. Check the address of the API", { status: response.status });
	return await response.json();
}
function checkedUrl(text) {
	const { protocol, username, password, search, hash } = new URL(text);
	if (protocol !== "https:" && protocol !== "http:") throw new TypeError("url: Use an address with https: or http:");
	if (username || password || search || hash) throw new TypeError("url: Use an address without a password, ? and #");
	return text.replace(/\/+$/, "");
}
function checkedToken(token) {
	if (token !== void 0 && /[^!-~]/.test(token)) throw new TypeError("token: Use an access token, which consists of ASCII characters without blanks");
	return token;
}
function filledPath(template, values) {
	return template.replaceAll(/\{(\w+)\}/g, (_braces, name) => {
		const value = values[name] ?? "";
		if (value === "" || value === "." || value === "..") throw new TypeError(`${name}: ${JSON.stringify(value)} is not a valid name`);
		return encodeURIComponent(value);
	});
}
function queryText(query) {
	const given = new URLSearchParams();
	for (const [name, value] of Object.entries(query ?? {})) if (value !== void 0) given.set(name, String(value));
	return given.size === 0 ? "" : `?${given.toString()}`;
}
// client/archives.ts
async function uploadArchive(transport, path, { archive, type = "application/x-tar", tag, image, signal }) {
	const { headers, ...request } = transport.prepare("uploadImage", {
		path,
		query: {
			tag,
			image
		}
	});
	const body = {
		body: archive,
		duplex: "half"
	};
	try {
		return await readJson(await transport.send({
			...request,
			...body,
			headers: {
				...headers,
				"content-type": type
			}
		}, signal));
	} catch (error) {
		signal?.throwIfAborted();
		throw problemOf(error);
	}
}
async function downloadArchive(transport, path, { signal, timeoutMs = transport.timeoutMs }) {
	const { headers, ...request } = transport.prepare("imageArchive", { path });
	const limit = newTimeLimit(`No response within ${timeoutMs} ms`, signal);
	try {
		limit.restart(timeoutMs);
		const response = await transport.send({
			...request,
			headers: {
				...headers,
				accept: "*/*"
			}
		}, limit.signal);
		limit.pause();
		return response;
	} catch (error) {
		limit.end();
		signal?.throwIfAborted();
		throw problemOf(error, limit.signal);
	}
}
// client/events.ts
var EventParser = class EventParser {
	lastEventId;
	retryMs;
	#rest = "";
	#endedWithCr = false;
	#id;
	#data = [];
	#type = "";
	constructor(lastEventId) {
		this.lastEventId = lastEventId;
		this.#id = lastEventId;
	}
	forNextStream() {
		const next = new EventParser(this.lastEventId);
		next.retryMs = this.retryMs;
		return next;
	}
	*parse(piece) {
		const text = this.#endedWithCr && piece.startsWith("\n") ? piece.slice(1) : piece;
		if (piece !== "") this.#endedWithCr = piece.endsWith("\r");
		const lines = (this.#rest + text).split(/\r\n|\r|\n/);
		this.#rest = lines.pop() ?? "";
		for (const line of lines) {
			const event = this.#readLine(line);
			if (event) yield event;
		}
	}
	#readLine(line) {
		if (line === "") return this.#dispatch();
		const colon = line.indexOf(":");
		const name = colon === -1 ? line : line.slice(0, colon);
		const value = colon === -1 ? "" : line.slice(colon + 1).replace(/^ /, "");
		if (name === "data") this.#data.push(value);
		else if (name === "event") this.#type = value;
		else if (name === "id" && !value.includes("\0")) this.#id = value;
		else if (name === "retry" && /^\d+$/.test(value)) this.retryMs = Number(value);
	}
	#dispatch() {
		this.lastEventId = this.#id;
		const event = {
			id: this.lastEventId,
			type: this.#type || "message",
			data: this.#data.join("\n")
		};
		const hasData = this.#data.length > 0;
		this.#data = [];
		this.#type = "";
		return hasData ? event : void 0;
	}
};
// client/streams.ts
const silenceMs = 45e3;
const allReceived = 204;
async function* followEvents(transport, { name, input, isComplete, signal, after }) {
	const request = transport.prepare(name, input);
	let parser = new EventParser(after);
	let failures = 0;
	for (;;) {
		const limit = newTimeLimit("The event stream was silent for too long", signal);
		let hadEvents = false;
		try {
			limit.restart(transport.timeoutMs);
			const position = parser.lastEventId !== void 0 && { "last-event-id": parser.lastEventId };
			const headers = {
				...request.headers,
				accept: "text/event-stream",
				...position
			};
			const response = await transport.send({
				...request,
				headers
			}, limit.signal);
			failures = 0;
			if (response.status === allReceived) return;
			for await (const piece of piecesOf(response, limit)) for (const event of parser.parse(piece)) {
				hadEvents = true;
				yield event;
			}
			limit.pause();
			if (await isComplete(hadEvents)) return;
		} catch (error) {
			signal?.throwIfAborted();
			const problem = problemOf(error, limit.signal);
			failures += 1;
			if (!isTemporary(problem) || failures > transport.retries) throw problem;
			await wait(problem.retryAfterMs ?? 0, signal);
		} finally {
			limit.end();
		}
		await wait(transport.backOffMs(failures, parser.retryMs), signal);
		parser = parser.forNextStream();
	}
}
async function* piecesOf(response, limit) {
	const reader = response.body?.getReader();
	if (!reader) return;
	const decoder = new TextDecoder();
	try {
		for (;;) {
			limit.restart(silenceMs);
			const { done, value } = await reader.read();
			limit.pause();
			if (done) return;
			yield decoder.decode(value, { stream: true });
		}
	} finally {
		await reader.cancel().catch(() => {});
	}
}
// client/backend-streams.ts
async function* statusesOf(transport, backend, { signal, after } = {}) {
	let last;
	const isComplete = async () => last?.status === "terminated";
	const input = { path: { backend_id: backend } };
	for await (const { data } of followEvents(transport, {
		name: "backendStatusStream",
		input,
		isComplete,
		signal,
		after
	})) {
		last = JSON.parse(data);
		yield last;
	}
}
async function* logOf(transport, backend, { signal, after, follow = true } = {}) {
	const isComplete = follow ? endOfStream(transport, backend, signal) : async () => true;
	const input = {
		path: { backend_id: backend },
		query: follow ? {} : { follow: "false" }
	};
	for await (const { id = "", data } of followEvents(transport, {
		name: "backendLogs",
		input,
		isComplete,
		signal,
		after
	})) yield {
		id,
		line: data
	};
}
async function* metricsOf(transport, backend, { signal, after } = {}) {
	const isComplete = endOfStream(transport, backend, signal);
	const input = { path: { backend_id: backend } };
	for await (const { data } of followEvents(transport, {
		name: "backendMetrics",
		input,
		isComplete,
		signal,
		after
	})) yield JSON.parse(data);
}
async function untilReady(transport, backend, options) {
	return await waitFor(transport, backend, options, (status) => {
		if (status.status === "ready") return true;
		if (isEnding(status)) throw endedError(backend, status);
		return false;
	});
}
async function untilTerminated(transport, backend, options) {
	return await waitFor(transport, backend, options, ({ status }) => status === "terminated");
}
async function waitFor(transport, backend, { signal, timeoutMs }, isReached) {
	const limit = newTimeLimit(`The backend ${backend} has not reached the status within ${timeoutMs} ms`, signal);
	if (timeoutMs !== void 0) limit.restart(timeoutMs);
	try {
		for await (const status of statusesOf(transport, backend, { signal: limit.signal })) if (isReached(status)) return status;
		throw new BerthError("UnexpectedResponse", `The statuses of the backend ${backend} ended early`);
	} finally {
		limit.end();
	}
}
function endOfStream(transport, backend, signal) {
	let hasEnded = false;
	return async (hadEvents) => {
		if (hasEnded && !hadEvents) return true;
		hasEnded ||= await transport.json("backendStatus", { path: { backend_id: backend } }, { signal }).then(({ status }) => status === "terminated", (error) => {
			if (error instanceof BerthError && error.code === "BackendNotFound") return true;
			throw error;
		});
		return false;
	};
}
function isEnding({ status }) {
	return status === "terminating" || status === "hard-terminating" || status === "terminated";
}
function endedError(backend, { termination_reason: reason, problem }) {
	const why = reason ? ` (${reason})` : "";
	return new BerthError("BackendEnded", problem === void 0 ? `The backend ${backend} ended before it was ready${why}` : `The backend ${backend} ended${why}: ${problem}`);
}
// client/names.ts
function servicePath(name) {
	const [account = "", service = "", ...rest] = name.split("/");
	if (account === "" || service === "" || rest.length > 0) throw new TypeError(`service: ${JSON.stringify(name)} is not of the form <account>/<service>`);
	return {
		account,
		service
	};
}
// client/nodes.ts
var Nodes = class extends EndpointGroup {
	async list(options) {
		return (await this.transport.json("listNodes", { path: void 0 }, options)).nodes;
	}
	async drain(node, options) {
		await sendIdempotent(this.transport, "drainNode", { path: { node } }, options);
	}
	async undrain(node, options) {
		await sendIdempotent(this.transport, "undrainNode", { path: { node } }, options);
	}
};
// client/people.ts
var Users = class extends EndpointGroup {
	list(options) {
		return this.transport.list("listUsers", "users", { path: void 0 }, options);
	}
	async create(user, options) {
		return await this.transport.json("createUser", {
			path: void 0,
			body: user
		}, options);
	}
	async invite(email, options) {
		return await sendIdempotent(this.transport, "inviteUser", { path: { user_email: email } }, options);
	}
	async update(email, change, options) {
		await sendIdempotent(this.transport, "updateUser", {
			path: { user_email: email },
			body: change
		}, options);
	}
};
var LogIns = class extends EndpointGroup {
	async setUp(request, options) {
		await this.transport.json("setUp", {
			path: void 0,
			body: request
		}, options);
	}
	async acceptInvitation(request, options) {
		await this.transport.json("acceptInvitation", {
			path: void 0,
			body: request
		}, options);
	}
	async logIn(request, options) {
		return await this.transport.json("logIn", {
			path: void 0,
			body: request
		}, options);
	}
	async logOut(uuid, options) {
		const input = { path: { uuid } };
		await sendChange(this.transport, "logOut", input, {
			options,
			doneBefore: ["Unauthorized", "TokenNotFound"]
		});
	}
	list(options) {
		return this.transport.list("listLogIns", "log_ins", { path: void 0 }, options);
	}
	async logOutOthers(options) {
		await sendIdempotent(this.transport, "logOutOthers", { path: void 0 }, options);
	}
	async changePassword(request, options) {
		await this.transport.json("changePassword", {
			path: void 0,
			body: request
		}, options);
	}
	async beginCli(options) {
		return await this.transport.json("beginCliLogin", { path: void 0 }, options);
	}
	async completeCli(token, code, options) {
		return await this.transport.json("completeCliLogin", {
			path: { token },
			body: { code }
		}, options);
	}
};
// client/services.ts
var Environments = class extends EndpointGroup {
	async list(service, options) {
		return (await this.transport.json("environments", { path: servicePath(service) }, options)).environments;
	}
	async create(service, environment, options) {
		const input = {
			path: servicePath(service),
			body: environment
		};
		await sendChange(this.transport, "createEnvironment", input, {
			options,
			doneBefore: ["EnvironmentExists"]
		});
	}
	async delete(service, environment, options) {
		const input = { path: {
			...servicePath(service),
			environment
		} };
		await sendChange(this.transport, "deleteEnvironment", input, {
			options,
			doneBefore: ["EnvironmentNotFound"]
		});
	}
};
var Settings = class extends EndpointGroup {
	async get(service, options) {
		return await this.transport.json("serviceSettings", { path: servicePath(service) }, options);
	}
	async change(service, change, options) {
		const input = {
			path: servicePath(service),
			body: change
		};
		await sendIdempotent(this.transport, "changeServiceSettings", input, options);
	}
	async isPublic(service, options) {
		return (await this.transport.json("visibility", { path: servicePath(service) }, options)).public;
	}
	async setPublic(service, isPublic, options) {
		const input = {
			path: servicePath(service),
			body: { public: isPublic }
		};
		await sendIdempotent(this.transport, "setVisibility", input, options);
	}
};
var SpawnTokens = class extends EndpointGroup {
	async create(service, spawn = {}, options) {
		const input = {
			path: servicePath(service),
			body: spawn
		};
		return (await this.transport.json("earliestCreateSpawnToken", input, options)).token;
	}
	async spawn(token, request = {}, options) {
		return await this.transport.json("earliestTokenSpawn", {
			path: { token },
			body: request
		}, options);
	}
	async revoke(token, options) {
		const input = { path: { token } };
		await sendChange(this.transport, "earliestRevokeSpawnToken", input, {
			options,
			doneBefore: ["SpawnTokenNotFound"]
		});
	}
};
// client/client.ts
var BerthClient = class {
	environments;
	settings;
	spawnTokens;
	accounts;
	tokens;
	trustRules;
	nodes;
	users;
	logIns;
	#transport;
	constructor(options) {
		const transport = new Transport(options);
		this.#transport = transport;
		this.environments = new Environments(transport);
		this.settings = new Settings(transport);
		this.spawnTokens = new SpawnTokens(transport);
		this.accounts = new Accounts(transport);
		this.tokens = new AccessTokens(transport);
		this.trustRules = new TrustRules(transport);
		this.nodes = new Nodes(transport);
		this.users = new Users(transport);
		this.logIns = new LogIns(transport);
	}
	async connect(service, request = {}, { environment, signal, timeoutMs } = {}) {
		const send = {
			signal,
			timeoutMs,
			repeatable: request.key !== void 0
		};
		const path = servicePath(service);
		if (environment === void 0) return await this.#transport.json("connect", {
			path,
			body: request
		}, send);
		return await this.#transport.json("connectEnvironment", {
			path: {
				...path,
				environment
			},
			body: request
		}, send);
	}
	async status(backend, options) {
		return await this.#transport.json("backendStatus", { path: { backend_id: backend } }, options);
	}
	statuses(backend, options) {
		return statusesOf(this.#transport, backend, options);
	}
	async waitUntilReady(backend, options = {}) {
		return await untilReady(this.#transport, backend, options);
	}
	async waitUntilTerminated(backend, options = {}) {
		return await untilTerminated(this.#transport, backend, options);
	}
	logs(backend, options) {
		return logOf(this.#transport, backend, options);
	}
	metrics(backend, options) {
		return metricsOf(this.#transport, backend, options);
	}
	async stop(backend, { hard, signal, timeoutMs } = {}) {
		const input = {
			path: { backend_id: backend },
			body: hard === void 0 ? {} : { hard }
		};
		await sendChange(this.#transport, "terminate", input, {
			options: {
				signal,
				timeoutMs
			},
			doneBefore: ["BackendNotRunning"]
		});
	}
	async stopBackends(service, request, options) {
		const input = {
			path: servicePath(service),
			body: request
		};
		return await sendIdempotent(this.#transport, "terminateBackends", input, options);
	}
	async backend(backend, options) {
		return await this.#transport.json("backend", { path: { backend_id: backend } }, options);
	}
	async traffic(backend, options) {
		return await this.#transport.json("backendTraffic", { path: { backend_id: backend } }, options);
	}
	backends(service, options = {}) {
		const path = servicePath(service);
		const query = {
			start: options.start?.toISOString(),
			end: options.end?.toISOString()
		};
		return this.#transport.list("serviceBackends", "backends", {
			path,
			query
		}, options);
	}
	runningBackends(account, options) {
		return this.#transport.list("accountBackends", "running_backends", { path: { account } }, options);
	}
	services(account, options) {
		return this.#transport.list("listServices", "services", { path: { account } }, options);
	}
	async service(service, options) {
		return await this.#transport.json("service", { path: servicePath(service) }, options);
	}
	async createService(service, { signal, timeoutMs } = {}) {
		const { account, service: name } = servicePath(service);
		const input = {
			path: { account },
			body: { name }
		};
		await sendChange(this.#transport, "createService", input, {
			options: {
				signal,
				timeoutMs
			},
			doneBefore: ["ServiceExists"]
		});
	}
	async deleteService(service, options) {
		const input = { path: servicePath(service) };
		await sendChange(this.#transport, "deleteService", input, {
			options,
			doneBefore: ["ServiceNotFound"]
		});
	}
	images(service, options) {
		return this.#transport.list("serviceImages", "images", { path: servicePath(service) }, options);
	}
	async setImage(service, image, { environment, signal, timeoutMs } = {}) {
		const send = {
			signal,
			timeoutMs,
			repeatable: true
		};
		const path = servicePath(service);
		const body = { image_tag: image };
		if (environment === void 0) await this.#transport.json("update", {
			path,
			body
		}, send);
		else await this.#transport.json("updateEnvironment", {
			path: {
				...path,
				environment
			},
			body
		}, send);
	}
	async imageName(service, options) {
		return (await this.#transport.json("imageName", { path: servicePath(service) }, options)).imageName;
	}
	async uploadImage(service, upload) {
		return await uploadArchive(this.#transport, servicePath(service), upload);
	}
	async downloadImage(service, digest, options = {}) {
		return await downloadArchive(this.#transport, {
			...servicePath(service),
			digest
		}, options);
	}
	async cliLoginStatus(token, { signal } = {}) {
		const isComplete = async (hadEvents) => hadEvents;
		const stream = {
			name: "cliLoginStatus",
			input: { path: { token } },
			isComplete,
			signal
		};
		for await (const { data } of followEvents(this.#transport, stream)) return JSON.parse(data).status;
		return "expired";
	}
	async call(name, input, options) {
		return await this.#transport.json(name, input, options);
	}
};
// action/failure.ts
var Failure = class extends Error {
	name = "Failure";
};
function messageOf(error) {
	if (error instanceof BerthError) {
		const id = error.id ? ` (request ${error.id})` : "";
		return `${error.code}: ${error.message}${id}`;
	}
	if (error instanceof Failure) return error.message;
	return error instanceof Error ? error.stack ?? error.message : String(error);
}
// action/push/docker-login.ts
const stateName$1 = "docker-config";
const sharedFolders = [
	"contexts",
	"cli-plugins",
	"buildx"
];
async function withLogIn(login, { env, workflow }, work) {
	const own = env["DOCKER_CONFIG"] || join(env["HOME"] || homedir(), ".docker");
	const folder = await logIn(login, own, {
		env,
		workflow
	});
	const certificates = env["DOCKER_TLS_VERIFY"] && { DOCKER_CERT_PATH: env["DOCKER_CERT_PATH"] || own };
	try {
		return await work({
			...env,
			DOCKER_CONFIG: folder,
			...certificates
		});
	} finally {
		await rm(folder, {
			recursive: true,
			force: true
		});
	}
}
async function logOut(workflow) {
	const folder = workflow.state(stateName$1);
	if (folder !== "") await rm(folder, {
		recursive: true,
		force: true
	});
}
async function logIn(login, own, { env, workflow }) {
	const folder = await mkdtemp(join(env["RUNNER_TEMP"] || tmpdir(), "berth-docker-"));
	workflow.saveState(stateName$1, folder);
	await mkdir(join(own, "buildx"), { recursive: true });
	for (const name of sharedFolders) if (existsSync(join(own, name))) await symlink(join(own, name), join(folder, name));
	const config = withLogin(await readConfig(own), login, workflow);
	await writeFile(join(folder, "config.json"), JSON.stringify(config), { mode: 384 });
	return folder;
}
function withLogin(config, { registry, account, token }, workflow) {
	const auth = Buffer.from(`${account}:${token}`).toString("base64");
	workflow.mask(auth);
	return {
		...config,
		auths: {
			...config.auths,
			[registry]: { auth }
		},
		credHelpers: {
			...config.credHelpers,
			[registry]: ""
		}
	};
}
async function readConfig(folder) {
	try {
		return JSON.parse(await readFile(join(folder, "config.json"), "utf8"));
	} catch {
		return {};
	}
}
// client/tools/commit-labels.ts
function commitLabels(commit) {
	const { hash, branch, repository, message, source } = commit;
	return Object.fromEntries(Object.entries({
		hash,
		branch,
		repository,
		message,
		"org.opencontainers.image.revision": hash,
		"org.opencontainers.image.ref.name": branch,
		"org.opencontainers.image.source": source
	}).flatMap(([name, value]) => value ? [[name, value]] : []));
}
// client/tools/registry-access.ts
const loopback = /^(?:localhost|[\w.-]+\.localhost|127(?:\.\d+){3}|\[::1\])$/;
function isLoopback(hostname) {
	return loopback.test(hostname);
}
function registryUrl(registry, apiUrl) {
	const { hostname } = new URL(`http://${registry}`);
	const api = new URL(apiUrl);
	return `${isLoopback(hostname) || api.hostname === hostname && api.protocol === "http:" ? "http" : "https"}://${registry}`;
}
async function requestGrant(action, at) {
	const { url, name, token } = at;
	const challenged = await sendWithRetries(at, `${url}/v2/`);
	const challenge = challenged.headers.get("www-authenticate") ?? "";
	const [, realm = "", service = ""] = /realm="([^"]+)",service="([^"]+)"/.exec(challenge) ?? [];
	if (realm === "" || new URL(realm).origin !== new URL(url).origin) {
		if (challenged.status >= 429) throw await registryError(challenged);
		throw new BerthError("UnexpectedResponse", `${url} does not answer as Berth's registry`);
	}
	const [account = ""] = name.split("/");
	const query = new URLSearchParams({
		service,
		scope: `repository:${name}:${action}`
	});
	const authorization = `Basic ${Buffer.from(`${account}:${token}`).toString("base64")}`;
	const granted = await sendWithRetries(at, `${realm}?${query.toString()}`, { headers: { authorization } });
	if (!granted.ok) throw await registryError(granted);
	return (await granted.json()).token;
}
const manifestTypes = [
	"application/vnd.oci.image.manifest.v1+json",
	"application/vnd.oci.image.index.v1+json",
	"application/vnd.docker.distribution.manifest.v2+json",
	"application/vnd.docker.distribution.manifest.list.v2+json"
].join(", ");
async function digestOfTag(tag, at) {
	const headers = {
		authorization: `Bearer ${await requestGrant("pull,push", at)}`,
		accept: manifestTypes
	};
	const answer = await sendWithRetries(at, `${at.url}/v2/${at.name}/manifests/${tag}`, {
		method: "HEAD",
		headers
	});
	if (answer.status === 404) return void 0;
	if (!answer.ok) throw await registryError(answer);
	return answer.headers.get("docker-content-digest") ?? void 0;
}
async function registryError(answer) {
	const { status, headers } = answer;
	const [first] = (await answer.json().catch(() => ({}))).errors ?? [];
	const message = `The registry answers ${status}: ${first?.message ?? "no message"}`;
	const retryAfterMs = retryAfter(headers.get("retry-after"));
	return new BerthError(first?.code ?? "RegistryError", message, {
		status,
		retryAfterMs
	});
}
const attempts$1 = 4;
const firstDelayMs = 250;
const longestDelayMs = 3e4;
async function sendWithRetries(at, url, init = {}) {
	for (let attempt = 1;; attempt += 1) {
		const answer = await at.send(url, init);
		const isBusy = answer.status === 429 || answer.status === 503;
		const delayMs = Math.max(firstDelayMs * 2 ** (attempt - 1), retryAfter(answer.headers.get("retry-after")) ?? 0);
		if (!isBusy || attempt === attempts$1 || delayMs > longestDelayMs) return answer;
		await answer.body?.cancel();
		await wait(delayMs, at.signal);
	}
}
// action/id-token.ts
const timeoutMs$1 = 15e3;
const attempts = 3;
async function deployToken(inputs, { env, workflow, signal }) {
	const { host, account } = inputs;
	const url = env["ACTIONS_ID_TOKEN_REQUEST_URL"];
	const secret = env["ACTIONS_ID_TOKEN_REQUEST_TOKEN"];
	if (!url || !secret) throw new Failure("token: Set it, or give the job \"permissions: id-token: write\" and the account a trust rule");
	const idToken = await requestIdToken(audienceUrl(url, host), secret, signal);
	workflow.mask(idToken);
	const client = new BerthClient({ url: host });
	try {
		const deploy = await client.trustRules.exchange(account, idToken, { signal });
		workflow.mask(deploy.token);
		checkScopes(inputs, deploy.scopes);
		return deploy;
	} catch (error) {
		if (!(error instanceof BerthError)) throw error;
		throw new Failure(`The account ${account} has not accepted this job: ${error.message}`, { cause: error });
	}
}
function audienceUrl(url, host) {
	const result = new URL(url);
	result.searchParams.set("audience", host);
	return result;
}
function checkScopes({ waitForReady, rollbackOnFailure }, scopes) {
	const needed = [
		"push",
		"deploy",
		...waitForReady ? ["connect"] : [],
		...rollbackOnFailure ? ["read"] : []
	];
	if (needed.every((scope) => scopes.includes(scope))) return;
	const how = `Create one with "berth admin trust create" and --scope ${needed.join(",")}`;
	throw new Failure(`The trust rule has the scopes ${scopes.join(",")}, and these inputs need others. ${how}`);
}
async function requestIdToken(url, secret, signal) {
	for (let attempt = 1;; attempt += 1) try {
		return await requestOnce(url, secret, signal);
	} catch (error) {
		signal.throwIfAborted();
		const why = error instanceof Error ? error.message : String(error);
		if (attempt === attempts) throw new Failure(`GitHub returned no ID token: ${why}`, { cause: error });
	}
}
async function requestOnce(url, secret, signal) {
	const response = await fetch(url, {
		headers: {
			authorization: `Bearer ${secret}`,
			accept: "application/json"
		},
		signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs$1)])
	});
	if (!response.ok) throw new Error(`HTTP status ${response.status}`);
	const { value } = await response.json();
	if (typeof value !== "string" || value === "") throw new Error("the response has no token");
	return value;
}
// action/access.ts
function logInOf(inputs, job) {
	return async (signal) => {
		const token = inputs.token ?? (await deployToken(inputs, {
			...job,
			signal
		})).token;
		return {
			token,
			client: new BerthClient({
				url: inputs.host,
				token
			})
		};
	};
}
// action/push/program.ts
async function runProgram(name, args, options) {
	const child = started(name, args, options, "pipe");
	const [stdout, stderr, code] = await Promise.all([
		text(child.stdout),
		text(child.stderr),
		exitOf(name, child)
	]);
	options.signal.throwIfAborted();
	return {
		code,
		stdout,
		stderr
	};
}
async function showProgram(name, args, options) {
	const code = await exitOf(name, started(name, args, options, 1));
	options.signal.throwIfAborted();
	return code;
}
function started(name, args, { env, signal }, output) {
	signal.throwIfAborted();
	const child = spawn(name, args, {
		env,
		stdio: [
			"ignore",
			output,
			output
		]
	});
	const end = () => void child.kill("SIGTERM");
	signal.addEventListener("abort", end, { once: true });
	child.once("close", () => signal.removeEventListener("abort", end));
	return child;
}
async function exitOf(name, child) {
	return await new Promise((resolve, reject) => {
		child.once("close", (code) => resolve(code ?? 1));
		child.once("error", (error) => reject(error.code === "ENOENT" ? new Failure(`There is no program "${name}" on this runner`) : error));
	});
}
// action/commit.ts
async function currentCommit(env, signal) {
	const hash = env["GITHUB_SHA"] ?? "";
	const repository = env["GITHUB_REPOSITORY"] ?? "";
	return {
		hash,
		branch: env["GITHUB_HEAD_REF"] || (env["GITHUB_REF_TYPE"] === "tag" ? "" : env["GITHUB_REF_NAME"]) || "",
		repository,
		message: messageOfEvent(env, hash) ?? await messageOfGit(env, hash, signal),
		source: repository === "" ? "" : `${env["GITHUB_SERVER_URL"] ?? "https://github.com"}/${repository}`
	};
}
function messageOfEvent(env, hash) {
	try {
		const { id, message } = JSON.parse(readFileSync(env["GITHUB_EVENT_PATH"] ?? "", "utf8")).head_commit ?? {};
		return id === hash && typeof message === "string" ? message : void 0;
	} catch {
		return;
	}
}
async function messageOfGit(env, hash, signal) {
	if (!/^[0-9a-f]{40,64}$/.test(hash)) return "";
	try {
		const { code, stdout } = await runProgram("git", [
			"log",
			"-1",
			"--format=%B",
			hash
		], {
			env,
			signal
		});
		return code === 0 ? stdout.trim() : "";
	} catch {
		signal.throwIfAborted();
		return "";
	}
}
// action/inputs.ts
function tokenInput(env) {
	return input(env, "token");
}
function readInputs(env) {
	const problems = [];
	const check = (read) => {
		try {
			return read();
		} catch (error) {
			if (!(error instanceof Failure)) throw error;
			problems.push(error.message);
			return;
		}
	};
	const token = check(() => singleLine("token", tokenInput(env)));
	const host = check(() => hostUrl(input(env, "host")));
	const names = check(() => serviceNames(env, token));
	const source = check(() => sourceOf(env));
	const tags = check(() => tagsOf(env));
	const waitForReady = check(() => flag(env, "wait-for-ready")) ?? true;
	const readyTimeoutMs = check(() => seconds(env, "ready-timeout-seconds") * 1e3);
	const rollbackOnFailure = check(() => flag(env, "rollback-on-failure")) ?? false;
	if (rollbackOnFailure && !waitForReady) problems.push("rollback-on-failure: It needs wait-for-ready");
	if (problems.length > 0 || !host || !names || !source || !tags || readyTimeoutMs === void 0) throw new Failure(problems.join("\n"));
	const environment = input(env, "environment") ?? "default";
	return {
		host,
		token,
		...names,
		environment,
		source,
		tags,
		waitForReady,
		readyTimeoutMs,
		rollbackOnFailure
	};
}
function input(env, name) {
	const value = env[`INPUT_${name.replaceAll(" ", "_").toUpperCase()}`]?.trim();
	return value === "" ? void 0 : value;
}
function singleLine(name, value) {
	if (value !== void 0 && /[^!-~]/.test(value)) throw new Failure(`${name}: It must not contain blanks, line breaks or characters other than ASCII`);
	return value;
}
function hostUrl(text) {
	if (text === void 0) throw new Failure("host: Set it to the address of the API, as in https://berth.example.com");
	const url = URL.parse(/^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `https://${text}`);
	if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash) throw new Failure("host: It is not an address such as https://berth.example.com");
	if (url.protocol === "http:" && !isLoopback(url.hostname)) throw new Failure("host: Use https, because the token would cross the network unencrypted");
	return `${url.origin}${url.pathname}`.replace(/\/+$/, "");
}
function serviceNames(env, token) {
	const given = input(env, "service");
	if (given === void 0) throw new Failure("service: Set it to the name of the service");
	const parts = given.split("/");
	if (parts.length > 2 || parts.includes("")) throw new Failure("service: Use SERVICE or ACCOUNT/SERVICE");
	const [service = "", inService] = parts.toReversed();
	const inToken = token?.includes(".") ? token.slice(0, token.indexOf(".")) : void 0;
	const account = input(env, "account") ?? inService ?? inToken;
	if (account === void 0) throw new Failure("account: Set it to the account of the service");
	if (inService !== void 0 && inService !== account) throw new Failure(`account: It is "${account}", but the service belongs to "${inService}"`);
	return {
		account,
		service
	};
}
function sourceOf(env) {
	const [image, archive] = [input(env, "image"), input(env, "archive")];
	const build = {
		context: input(env, "context") ?? ".",
		file: input(env, "file"),
		buildArgs: lines(input(env, "build-args")),
		platforms: list(input(env, "platforms"))
	};
	const given = image === void 0 ? archive : image;
	if (given === void 0) {
		const wrong = build.buildArgs.find((each) => !/^[A-Za-z_]\w*(?:=|$)/.test(each));
		if (wrong !== void 0) throw new Failure(`build-args: "${wrong}" is not of the form NAME=value`);
		return {
			kind: "build",
			build
		};
	}
	if (image !== void 0 && archive !== void 0) throw new Failure("archive: Give either an image or an archive");
	const named = image === void 0 ? "archive" : "image";
	const unused = [
		"file",
		"build-args",
		"platforms"
	].find((name) => input(env, name) !== void 0);
	if (unused) throw new Failure(`${unused}: It is for builds, and the ${named} is built already`);
	return image === void 0 ? {
		kind: "archive",
		path: given
	} : {
		kind: "image",
		image
	};
}
function tagsOf(env) {
	const tags = list(input(env, "tags"));
	const wrong = tags.find((tag) => !/^\w[\w.-]{0,127}$/.test(tag));
	if (wrong !== void 0) throw new Failure(`tags: "${wrong}" is not a tag; tags consist of letters, digits, _ . and -`);
	if (tags.length > 0) return [...new Set(tags)];
	const hash = env["GITHUB_SHA"] ?? "";
	return [hash === "" ? "latest" : `sha-${hash.slice(0, 12)}`];
}
function flag(env, name) {
	const value = input(env, name);
	if (/^(?:true|True|TRUE)$/.test(value ?? "")) return true;
	if (value === void 0 || /^(?:false|False|FALSE)$/.test(value)) return false;
	throw new Failure(`${name}: Use true or false`);
}
function seconds(env, name) {
	const value = input(env, name) ?? "300";
	if (!/^\d{1,5}$/.test(value) || Number(value) === 0) throw new Failure(`${name}: Use a number of seconds, such as 300`);
	return Number(value);
}
function lines(text = "") {
	return text.split(/\r?\n/).flatMap((line) => line.trim() || []);
}
function list(text = "") {
	return text.split(/[\n,]/).flatMap((each) => each.trim() || []);
}
// action/push/archive.ts
async function pushArchive(path, { client, service, tags, signal }) {
	await checkReadable(path);
	let image;
	for (const tag of tags) {
		const file = createReadStream(path);
		const archive = Readable.toWeb(file);
		try {
			image = await client.uploadImage(service, {
				archive,
				tag,
				signal
			});
		} finally {
			file.destroy();
		}
	}
	return image?.digest ?? "";
}
async function checkReadable(path) {
	try {
		await using file = await open(path);
		await file.read(Buffer.alloc(1));
	} catch (error) {
		const { code, message } = error;
		throw new Failure(`archive: Cannot read ${path}: ${code === "ENOENT" ? "it does not exist" : code === "EISDIR" ? "it is a folder" : message}`, { cause: error });
	}
}
// action/push/docker.ts
async function buildImage(build, push) {
	const isBuildx = await hasBuildx(push);
	if (!isBuildx && build.platforms.length > 1) throw new Failure("platforms: More than one platform needs buildx");
	await runBuild([...isBuildx ? [
		"buildx",
		"build",
		"--progress",
		"plain",
		"--output",
		"type=cacheonly"
	] : ["build"], ...buildArguments(build, push)], push);
}
async function pushBuild(build, push) {
	return await hasBuildx(push) ? await pushWithBuildx(build, push) : await pushTags(push);
}
async function pushImage(image, push) {
	for (const target of targets(push)) {
		const { code, stderr } = await runProgram("docker", [
			"tag",
			"--",
			image,
			target
		], push);
		if (code !== 0) throw new Failure(`image: Docker does not have "${image}": ${stderr.trim()}`);
	}
	return await pushTags(push);
}
async function hasBuildx(push) {
	return (await runProgram("docker", ["buildx", "version"], push)).code === 0;
}
async function pushWithBuildx(build, push) {
	const folder = await mkdtemp(join(push.env["RUNNER_TEMP"] || tmpdir(), "berth-build-"));
	try {
		const metadata = join(folder, "metadata.json");
		await runBuild([...[
			"buildx",
			"build",
			"--push",
			"--progress",
			"plain",
			"--metadata-file",
			metadata
		], ...buildArguments(build, push)], push);
		const digest = JSON.parse(await readFile(metadata, "utf8"))["containerimage.digest"];
		if (typeof digest !== "string") throw new Failure("docker buildx did not report the pushed digest");
		return digest;
	} finally {
		await rm(folder, {
			recursive: true,
			force: true
		});
	}
}
async function runBuild(command, push) {
	if (await push.show(() => showProgram("docker", command, push)) !== 0) throw new Failure("The build failed, see its output");
}
function buildArguments({ file, platforms, buildArgs, labels, context }, push) {
	return [
		...targets(push).flatMap((target) => ["--tag", target]),
		...file === void 0 ? [] : ["--file", file],
		...platforms.length === 0 ? [] : ["--platform", platforms.join(",")],
		...buildArgs.flatMap((each) => ["--build-arg", each]),
		...Object.entries(labels).flatMap(([name, value]) => ["--label", `${name}=${value}`]),
		"--",
		context
	];
}
async function pushTags(push) {
	for (const target of targets(push)) if (await push.show(() => showProgram("docker", ["push", target], push)) !== 0) throw new Failure(`docker push of ${target} failed, see its output`);
	const [tag = ""] = push.tags;
	return await push.digestOf(tag);
}
function targets({ repository, tags }) {
	return tags.map((tag) => `${repository}:${tag}`);
}
// action/rollout/rollback.ts
const rollbackTimeoutMs = 5e3;
async function rollBack({ logIn, workflow, inputs, service, previous, pushed }) {
	const { environment, tags } = inputs;
	if (previous?.digest === void 0) {
		if (pushed !== void 0) workflow.warning(`${service} has no previous image, so ${pushed} stays`);
		return;
	}
	const options = { timeoutMs: rollbackTimeoutMs };
	try {
		const { client } = await logIn(AbortSignal.timeout(rollbackTimeoutMs));
		const { reference, digest } = await environmentImage(client, service, {
			environment,
			...options
		});
		const isSame = reference === previous.reference;
		if (isSame && digest === previous.digest) return;
		if (reference !== pushed && !(isSame && tags.includes(reference))) {
			workflow.warning(`No rollback: another deployment has set ${service}/${environment} to ${reference}`);
			return;
		}
		await client.setImage(service, previous.digest, {
			environment,
			...options
		});
		workflow.notice(`Rolled back: new backends of ${service}/${environment} run ${previous.digest} again`);
	} catch (error) {
		workflow.error(`The rollback failed, so new backends may run the new image: ${messageOf(error)}`);
	}
}
async function imageBefore(client, service, options) {
	try {
		return await environmentImage(client, service, options);
	} catch (error) {
		if (error instanceof BerthError && error.code === "ServiceNotFound") return void 0;
		if (error instanceof BerthError && error.code === "Forbidden") throw new Failure("rollback-on-failure: The token needs the scope read", { cause: error });
		throw error;
	}
}
async function environmentImage(client, service, { environment, ...options }) {
	const { environments } = await client.service(service, options);
	const found = environments.find(({ name }) => name === environment);
	if (!found) throw new Failure(`environment: The service ${service} has no environment "${environment}"`);
	const reference = found.image_tag;
	if (reference.startsWith("sha256:")) return {
		reference,
		digest: reference
	};
	for await (const { tag, digest } of client.images(service, {
		pageSize: 100,
		...options
	})) if (tag === reference) return {
		reference,
		digest
	};
	return {
		reference,
		digest: void 0
	};
}
// action/rollout/rollout.ts
const maxLogLines = 50;
const logTimeoutMs = 1e4;
async function rollOut(rollout) {
	const { client, workflow, inputs, service, digest, signal } = rollout;
	const { environment } = inputs;
	await client.setImage(service, digest, {
		environment,
		signal
	});
	workflow.info(`New backends of ${service}/${environment} run ${digest}`);
	return inputs.waitForReady ? await verify(rollout) : void 0;
}
async function verify(rollout) {
	const { client, workflow, inputs, service, digest, signal } = rollout;
	const { environment, readyTimeoutMs } = inputs;
	const session = await client.connect(service, { spawn: { tag: digest } }, {
		environment,
		signal
	}).catch(explain);
	const backend = session.backend_id;
	workflow.info(`Waiting for the backend ${backend}`);
	try {
		await client.waitUntilReady(backend, {
			timeoutMs: readyTimeoutMs,
			signal
		});
		signal.throwIfAborted();
	} catch (error) {
		const failure = await failureOf(rollout, backend, error);
		await abandon(rollout, backend);
		throw failure;
	}
	workflow.info(`The backend ${backend} is ready`);
	return session;
}
async function failureOf({ client, inputs }, backend, error) {
	const code = error instanceof BerthError ? error.code : void 0;
	if (code !== "TimedOut" && code !== "BackendEnded") return error;
	const { problem } = await client.status(backend).catch(() => ({ problem: void 0 }));
	const seconds = inputs.readyTimeoutMs / 1e3;
	return new Failure(`The backend ${backend} ${code === "TimedOut" ? `was not ready within ${seconds} seconds` : "ended before it was ready"}${problem === void 0 ? "" : `: ${problem}`}`, { cause: error });
}
async function abandon({ logIn, workflow, signal }, backend) {
	try {
		const { client } = await logIn(AbortSignal.timeout(rollbackTimeoutMs));
		if (!signal.aborted) await workflow.group(`The last lines of the log of ${backend}`, async () => {
			for (const line of await lastLogLines(client, backend)) workflow.info(line);
		});
		await client.stop(backend, {
			hard: true,
			timeoutMs: rollbackTimeoutMs
		});
	} catch (error) {
		if (error instanceof BerthError && error.code === "BackendNotRunning") return;
		workflow.warning(`The backend ${backend} was not stopped: ${messageOf(error)}`);
	}
}
async function lastLogLines(client, backend) {
	const lines = [];
	try {
		for await (const { line } of client.logs(backend, {
			follow: false,
			signal: AbortSignal.timeout(logTimeoutMs)
		})) {
			lines.push(line);
			if (lines.length > maxLogLines) lines.shift();
		}
		return lines;
	} catch (error) {
		return [...lines, `(The log cannot be read: ${messageOf(error)})`];
	}
}
function explain(error) {
	if (!(error instanceof BerthError && error.code === "Forbidden")) throw error;
	throw new Failure("wait-for-ready: The token needs the scope connect", { cause: error });
}
// action/push/image-size.ts
const timeoutMs = 1e4;
async function imageSize({ repository, digest }, access) {
	const [registry = "", ...path] = repository.split("/");
	const signal = AbortSignal.any([access.signal, AbortSignal.timeout(timeoutMs)]);
	const send = async (url, init) => await fetch(url, {
		...init,
		signal
	});
	try {
		const [url, name] = [registryUrl(registry, access.host), path.join("/")];
		const grant = await requestGrant("pull", {
			url,
			name,
			token: access.token,
			send,
			signal
		});
		const read = async (reference) => {
			const headers = {
				authorization: `Bearer ${grant}`,
				accept: manifestTypes
			};
			const response = await send(`${url}/v2/${name}/manifests/${reference}`, { headers });
			if (!response.ok) throw new Error(`HTTP status ${response.status}`);
			return await response.json();
		};
		const top = await read(digest);
		const blobs = (top.manifests ? await Promise.all(top.manifests.map(async (each) => await read(each.digest))) : [top]).flatMap(({ config, layers = [] }) => [...config ? [config] : [], ...layers]);
		return [...new Map(blobs.map((blob) => [blob.digest, blob.size])).values()].reduce((sum, size) => sum + size, 0);
	} catch {
		access.signal.throwIfAborted();
		return;
	}
}
// action/summary.ts
function summaryOf(deployed) {
	const { commit, backend, sizeBytes } = deployed;
	return `## Deployed to Berth\n\n<table>\n${[
		["Service", code(`${deployed.service}/${deployed.environment}`)],
		["Commit", `${code(commit.hash.slice(0, 12))} ${escaped(firstLine(commit.message))}`],
		["Digest", code(deployed.digest)],
		["Tags", deployed.tags.map(code).join(" ")],
		...sizeBytes === void 0 ? [] : [["Size", megabytes(sizeBytes)]],
		...backend === void 0 ? [] : [["Ready backend", code(backend)]],
		["Time", `${(deployed.durationMs / 1e3).toFixed(1)} s`]
	].map(([name, value]) => `<tr><th>${name}</th><td>${value}</td></tr>`).join("\n")}\n</table>\n\n`;
}
function code(text) {
	return `<code>${escaped(text)}</code>`;
}
function firstLine(text) {
	return text.trim().split(/[\r\n]/)[0] ?? "";
}
function escaped(text) {
	return text.replaceAll(/[^\w .,/:()+-]/gu, (character) => `&#${character.codePointAt(0)};`);
}
function megabytes(bytes) {
	return `${(bytes / 1e6).toFixed(1)} MB`;
}
// action/run.ts
async function deploy({ env, workflow, signal }) {
	const startedAt = performance.now();
	maskToken(workflow, tokenInput(env));
	const inputs = readInputs(env);
	const logIn = logInOf(inputs, {
		env,
		workflow
	});
	const access = await logIn(signal);
	const service = `${inputs.account}/${inputs.service}`;
	const commit = await currentCommit(env, signal);
	const { digest, sizeBytes, verified } = await deployOrRollBack({
		env,
		workflow,
		signal,
		inputs,
		logIn,
		access,
		service,
		commit
	});
	workflow.setOutput("url", verified?.url ?? "");
	workflow.setOutput("backend-id", verified?.backend_id ?? "");
	const { environment, tags } = inputs;
	const backend = verified?.backend_id;
	const durationMs = performance.now() - startedAt;
	workflow.summary(summaryOf({
		service,
		environment,
		digest,
		tags,
		sizeBytes,
		backend,
		durationMs,
		commit
	}));
}
async function deployOrRollBack(deployment) {
	const { workflow, signal, inputs, logIn, access, service } = deployment;
	const { environment, rollbackOnFailure, host } = inputs;
	const previous = rollbackOnFailure ? await imageBefore(access.client, service, {
		environment,
		signal
	}) : void 0;
	let pushed;
	try {
		pushed = await workflow.group("Push the image", async () => await push(deployment));
		const { repository, digest } = pushed;
		workflow.setOutput("digest", digest);
		workflow.setOutput("image", `${repository}@${digest}`);
		const { client, token } = await logIn(signal);
		return {
			digest,
			sizeBytes: await imageSize(pushed, {
				token,
				host,
				signal
			}),
			verified: await rollOut({
				client,
				logIn,
				workflow,
				inputs,
				service,
				digest,
				signal
			})
		};
	} catch (error) {
		if (rollbackOnFailure) await rollBack({
			logIn,
			workflow,
			inputs,
			service,
			previous,
			pushed: pushed?.digest
		});
		throw error;
	}
}
function maskToken(workflow, token) {
	for (const part of [token ?? "", token?.slice(token.indexOf(".") + 1) ?? ""]) for (const line of part.split(/\s+/)) if (line.length > 3) workflow.mask(line);
}
async function push(deployment) {
	const { access, logIn, signal, inputs, service } = deployment;
	const { source, tags } = inputs;
	if (source.kind === "archive") {
		const digest = await pushArchive(source.path, {
			client: access.client,
			service,
			tags,
			signal
		});
		const { client } = await logIn(signal);
		return {
			repository: await client.imageName(service, { signal }),
			digest
		};
	}
	const repository = await imageName(deployment);
	return {
		repository,
		digest: await pushWithDocker(deployment, repository, source)
	};
}
async function pushWithDocker(deployment, repository, source) {
	const { access, logIn, env, workflow, signal, inputs, service, commit } = deployment;
	const { tags } = inputs;
	const registry = repository.slice(0, repository.indexOf("/"));
	const show = async (work) => await workflow.withoutCommands(work);
	const digestOf = async (tag) => {
		const { token } = await logIn(signal);
		const send = async (url, init) => await fetch(url, {
			...init,
			signal
		});
		const found = await digestOfTag(tag, {
			url: registryUrl(registry, inputs.host),
			name: service,
			token,
			send,
			signal
		});
		if (found === void 0) throw new Failure(`The registry does not have ${repository}:${tag} after the push`);
		return found;
	};
	const withDocker = async ({ token }, work) => await withLogIn({
		registry,
		account: inputs.account,
		token
	}, {
		env,
		workflow
	}, async (dockerEnv) => {
		return await work({
			env: dockerEnv,
			signal,
			repository,
			tags,
			digestOf,
			show
		});
	});
	if (source.kind === "image") return await withDocker(access, async (push) => await pushImage(source.image, push));
	const build = {
		...source.build,
		labels: commitLabels(commit)
	};
	await withDocker(access, async (push) => await buildImage(build, push));
	return await withDocker(await logIn(signal), async (push) => await pushBuild(build, push));
}
async function imageName({ access: { client }, service, signal, workflow }) {
	try {
		return await client.imageName(service, { signal });
	} catch (error) {
		if (!(error instanceof BerthError && error.code === "ServiceNotFound")) throw error;
	}
	try {
		await client.createService(service, { signal });
	} catch (error) {
		if (!(error instanceof BerthError && error.code === "Forbidden")) throw error;
		throw new Failure(`There is no service ${service}. Create it once with "berth service create", or use a token with the scope manage`, { cause: error });
	}
	workflow.info(`Created the service ${service}`);
	return await client.imageName(service, { signal });
}
// action/workflow/workflow.ts
var Workflow = class {
	#io;
	constructor(io) {
		this.#io = io;
	}
	mask(secret) {
		if (secret !== "") this.#command("add-mask", secret);
	}
	info(text) {
		const lines = plain(text).split(/\r\n|\r|\n/);
		for (const line of lines) this.#io.write(`${line.replace(/^(\s*):(?=:)/, "$1​:").replaceAll("##[", "#​#[")}\n`);
	}
	notice(text) {
		this.#command("notice", plain(text), { title: "Berth" });
	}
	warning(text) {
		this.#command("warning", plain(text), { title: "Berth" });
	}
	error(text) {
		this.#command("error", plain(text), { title: "Berth" });
	}
	async group(name, work) {
		this.#command("group", plain(name));
		try {
			return await work();
		} finally {
			this.#command("endgroup", "");
		}
	}
	async withoutCommands(work) {
		const token = randomUUID();
		this.#command("stop-commands", token);
		try {
			return await work();
		} finally {
			this.#io.write(`\n::${token}::\n`);
		}
	}
	setOutput(name, value) {
		this.#append("GITHUB_OUTPUT", keyed(name, value));
	}
	saveState(name, value) {
		this.#append("GITHUB_STATE", keyed(name, value));
	}
	state(name) {
		return this.#io.env[`STATE_${name}`] ?? "";
	}
	summary(markdown) {
		if (this.#io.env["GITHUB_STEP_SUMMARY"]) this.#append("GITHUB_STEP_SUMMARY", markdown);
	}
	#append(variable, text) {
		const path = this.#io.env[variable];
		if (!path) throw new Error(`${variable} is not set: this program runs as a step of a GitHub workflow`);
		appendFileSync(path, text);
	}
	#command(name, data, properties = {}) {
		const fields = Object.entries(properties).map(([key, value]) => `${key}=${escapedProperty(value)}`);
		this.#io.write(`::${[name, fields.join(",")].filter(Boolean).join(" ")}::${escapedData(data)}\n`);
	}
};
function keyed(name, value) {
	const end = `end-${randomUUID()}`;
	return `${name}<<${end}\n${value}\n${end}\n`;
}
function plain(text) {
	return text.replaceAll(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g, "");
}
function escapedData(text) {
	return text.replaceAll("%", "%25").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
}
function escapedProperty(text) {
	return escapedData(text).replaceAll(":", "%3A").replaceAll(",", "%2C");
}
// action/deploy.ts
const stateName = "is-post";
const env = process.env;
const workflow = new Workflow({
	env,
	write: (text) => void process.stdout.write(text)
});
if (workflow.state(stateName) === "") await step();
else await logOut(workflow).catch((error) => workflow.warning(`Docker is still logged in: ${messageOf(error)}`));
async function step() {
	const cancelled = new AbortController();
	const cancel = () => cancelled.abort(new Failure("The step was cancelled"));
	process.once("SIGINT", cancel).once("SIGTERM", cancel);
	try {
		workflow.saveState(stateName, "true");
		await deploy({
			env,
			workflow,
			signal: cancelled.signal
		});
	} catch (error) {
		workflow.error(messageOf(error));
		process.exitCode = 1;
	}
}
export {};
