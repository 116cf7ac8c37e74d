import { appendFileSync, createReadStream, existsSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, open, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { Readable } from "node:stream";
import { randomUUID } from "node:crypto";
// client/errors.ts
/** A call that failed. Compare `code`: it is stable, the message is not. */
var BerthError = class extends Error {
	/** A code of the API (`docs/errors.md`) or of the client. A newer server may send codes that this client does not list. */
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
/** The error that a response reports. */
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
/** Seconds or a date (RFC 9110, section 10.2.3). */
function retryAfter(header) {
	if (header === null) return void 0;
	const ms = /^\d+$/.test(header) ? Number(header) * 1e3 : Date.parse(header) - Date.now();
	return Number.isNaN(ms) ? void 0 : Math.max(0, ms);
}
// client/changes.ts
/** Sends a change, and retries it if no response arrives: the errors `doneBefore` then mean that an earlier attempt made it. */
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
/** Sends a change that has the same result when it is made twice, and retries it if no response arrives. */
async function sendIdempotent(transport, name, input, { signal, timeoutMs } = {}) {
	return await transport.json(name, input, {
		signal,
		timeoutMs,
		repeatable: true
	});
}
// client/endpoint-group.ts
/** The methods of the client for a group of endpoints. */
var EndpointGroup = class {
	transport;
	constructor(transport) {
		this.transport = transport;
	}
};
// client/accounts.ts
/** Accounts: their members, limits, access tokens, trust rules and audit. */
var Accounts = class extends EndpointGroup {
	/** The accounts that the token is valid for; for an administrator who has logged in, all accounts. */
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
	/** Adds a user to an account, or changes the role. */
	async setMember(account, member, options) {
		await sendIdempotent(this.transport, "setMember", {
			path: { account },
			body: member
		}, options);
	}
	/** Removes a user from an account. Tokens of the user stop working there within a second. */
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
	/** Changes limits of an account. `null` restores the default limit. */
	async setLimits(account, limits, options) {
		await sendIdempotent(this.transport, "setAccountLimits", {
			path: { account },
			body: limits
		}, options);
	}
	/** The changes in an account, newest first. */
	audit(account, options) {
		return this.transport.list("accountAudit", "records", { path: { account } }, options);
	}
	/** The changes outside of accounts (users, accounts, log-ins), newest first. */
	platformAudit(options) {
		return this.transport.list("platformAudit", "records", { path: void 0 }, options);
	}
};
/** Access tokens of accounts. */
var AccessTokens = class extends EndpointGroup {
	/** The tokens of an account, newest first: all tokens for an owner, otherwise the tokens that act for the caller. */
	list(account, options) {
		return this.transport.list("listTokens", "tokens", { path: { account } }, options);
	}
	/** Creates a token, which may allow no more than the caller may do. Only this response contains the secret. */
	async create(account, token, options) {
		return await this.transport.json("createToken", {
			path: { account },
			body: token
		}, options);
	}
	/** Revokes a token by its ID. Within a second, all processes reject it. */
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
/** Trust rules, by which deployments get tokens without a stored secret. */
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
	/**
	* Exchanges the ID token of a deployment for a deploy token. The audience of the ID token is the address of the API. It can be exchanged
	* once: request another ID token to retry. Needs no access token.
	*/
	async exchange(account, idToken, options) {
		return await this.transport.json("exchangeIdToken", {
			path: { account },
			body: { id_token: idToken }
		}, options);
	}
};
// client/time.ts
/** Time limits and waits, which abort signals end early. */
/** Returns a time limit whose timer has not started. */
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
			timer = setTimeout(() => controller.abort(new BerthError("TimedOut", message)), limitMs);
		},
		pause: () => clearTimeout(timer),
		end: () => {
			clearTimeout(timer);
			signal?.removeEventListener("abort", forward);
		}
	};
}
/** Waits. Rejects with the reason of the signal when that aborts. */
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
/** How each endpoint is called. */
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
/** Sends requests to the API, and retries them. */
const longestDelayMs = 1e4;
/** If the server asks for a longer wait, the call fails, so that the application can decide. */
const longestRetryAfterMs = 6e4;
/** Sends requests to one API. */
var Transport = class {
	#url;
	#token;
	#fetch;
	timeoutMs;
	retries;
	#retryDelayMs;
	constructor(options) {
		this.#url = checkedUrl(options.url);
		this.#token = options.token;
		this.#fetch = options.fetch ?? ((input, init) => fetch(input, init));
		this.timeoutMs = options.timeoutMs ?? 3e4;
		this.retries = options.retries ?? 5;
		this.#retryDelayMs = options.retryDelayMs ?? 250;
	}
	/** Calls an endpoint and reads the JSON of its response. Retries the request where that is safe. */
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
				if (!(isRejected(problem) || repeatable && isTemporary(problem)) || attempt > this.retries || (problem.retryAfterMs ?? 0) > longestRetryAfterMs) throw problem;
				if (!isRejected(problem)) onLost?.();
				await wait((problem.retryAfterMs ?? 0) + this.backOffMs(attempt), signal);
			} finally {
				limit.end();
			}
		}
	}
	/** Yields the items of a list, from the field `field` of its pages. Requests each page when the previous items are consumed. */
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
	/** Returns a request to an endpoint, ready to be sent. Throws `TypeError` for a name that is not valid in a path. */
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
	/** Sends a request once, and resolves with the response when its head has arrived. Rejects with the error that it reports. */
	async send({ url, ...request }, signal) {
		const response = await this.#fetch(url, {
			...request,
			redirect: "manual",
			signal
		});
		if (!response.ok) throw await errorOf(response);
		return response;
	}
	/** How long to wait after consecutive failures: longer each time, and randomized, so that clients do not retry together. */
	backOffMs(failures, firstMs = this.#retryDelayMs) {
		const doubledMs = firstMs * 2 ** Math.max(0, failures - 1);
		return Math.min(longestDelayMs, doubledMs) * (.5 + Math.random() / 2);
	}
};
/** The error of an attempt. `limit` is the signal of its time limit. */
function problemOf(error, limit) {
	if (limit.aborted && limit.reason instanceof BerthError) return limit.reason;
	if (error instanceof BerthError) return error;
	return new BerthError("Unreachable", "No response from the API. Check the address and the network", { cause: error });
}
/** Whether the API has rejected a request without handling it, and asks for a retry. */
function isRejected({ status, retryAfterMs }) {
	return (status === 429 || status === 503) && retryAfterMs !== void 0;
}
/** Whether the same request may succeed later. */
function isTemporary({ code, status }) {
	return code === "Unreachable" || code === "TimedOut" || status !== void 0 && temporary.has(status);
}
/** Time-outs, limits, and proxies whose server restarts. */
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
	return await readJson(await sendOnce(transport, {
		...request,
		...body,
		headers: {
			...headers,
			"content-type": type
		}
	}, signal));
}
async function downloadArchive(transport, path, { signal, timeoutMs = transport.timeoutMs }) {
	const { headers, ...request } = transport.prepare("imageArchive", { path });
	return await sendOnce(transport, {
		...request,
		headers: {
			...headers,
			accept: "*/*"
		}
	}, signal, timeoutMs);
}
async function sendOnce(transport, request, signal, timeoutMs) {
	const limit = newTimeLimit(`No response within ${timeoutMs} ms`, signal);
	if (timeoutMs !== void 0) limit.restart(timeoutMs);
	try {
		const response = await transport.send(request, limit.signal);
		limit.pause();
		return response;
	} catch (error) {
		signal?.throwIfAborted();
		throw problemOf(error, limit.signal);
	}
}
// client/events.ts
/** Parses the text of an event stream, piece by piece. */
var EventParser = class EventParser {
	/** The ID of the last complete event, after which a new stream continues. */
	lastEventId;
	/** How long the server asks clients to wait before they reconnect. */
	retryMs;
	/** The start of a line whose end has not arrived. */
	#rest = "";
	/** Whether the last piece ended with CR: a following LF belongs to the same line end. */
	#endedWithCr = false;
	#id;
	#data = [];
	#type = "";
	constructor(lastEventId) {
		this.lastEventId = lastEventId;
		this.#id = lastEventId;
	}
	/** A parser for the stream that continues after this one. */
	forNextStream() {
		const next = new EventParser(this.lastEventId);
		next.retryMs = this.retryMs;
		return next;
	}
	/** The events that are complete with this piece. */
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
/** Event streams that survive broken connections: a stream that breaks is reopened after its last event. */
/** The server sends a comment every 15 s, so a connection that is silent for three times as long is dead. */
const silenceMs = 45e3;
/** The status with which the server answers if the client has received every event. */
const allReceived = 204;
/** Follows an event stream until it is complete. */
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
/** The text of a response. While the consumer of the pieces is busy, the time limit is paused. */
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
/** Waits until a backend is ready. Rejects with `BackendEnded` when it ends before, and with `TimedOut`. */
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
/**
* Returns whether a stream of logs or metrics is complete when the server has ended it. A server that is being stopped also ends streams,
* even of a backend that has ended. So a stream is complete if it was opened after the backend had ended, and contained no event.
*/
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
/** The two parts of a service's name, `<account>/<service>`. Throws `TypeError` for another form. */
function servicePath(name) {
	const [account = "", service = "", ...rest] = name.split("/");
	if (account === "" || service === "" || rest.length > 0) throw new TypeError(`service: ${JSON.stringify(name)} is not of the form <account>/<service>`);
	return {
		account,
		service
	};
}
// client/nodes.ts
/** The nodes of the platform, for administrators. */
var Nodes = class extends EndpointGroup {
	/** All nodes, by name. */
	async list(options) {
		return (await this.transport.json("listNodes", { path: void 0 }, options)).nodes;
	}
	/** Stops a node from accepting new backends. Its running backends continue. */
	async drain(node, options) {
		await sendIdempotent(this.transport, "drainNode", { path: { node } }, options);
	}
	/** Lets a node accept new backends again. */
	async undrain(node, options) {
		await sendIdempotent(this.transport, "undrainNode", { path: { node } }, options);
	}
};
// client/people.ts
/** Users of the platform, and their log-ins. */
/** Users. Only administrators who have logged in may manage them. */
var Users = class extends EndpointGroup {
	/** The users of the platform, oldest first. */
	list(options) {
		return this.transport.list("listUsers", "users", { path: void 0 }, options);
	}
	/** Creates a user, who sets a password with the invitation. Only this response contains the invitation. */
	async create(user, options) {
		return await this.transport.json("createUser", {
			path: void 0,
			body: user
		}, options);
	}
	/** Invites a user to set a new password. Earlier invitations become invalid. */
	async invite(email, options) {
		return await sendIdempotent(this.transport, "inviteUser", { path: { user_email: email } }, options);
	}
	/** Grants or revokes the rights of an administrator, disables or enables a user. */
	async update(email, change, options) {
		await sendIdempotent(this.transport, "updateUser", {
			path: { user_email: email },
			body: change
		}, options);
	}
};
/** Log-ins of browsers and command lines. In a browser, the session is a cookie, and the client needs no access token. */
var LogIns = class extends EndpointGroup {
	/** Creates the first administrator with the code that the first start has printed. */
	async setUp(request, options) {
		await this.transport.json("setUp", {
			path: void 0,
			body: request
		}, options);
	}
	/** Sets the password of a user with the code of an invitation. */
	async acceptInvitation(request, options) {
		await this.transport.json("acceptInvitation", {
			path: void 0,
			body: request
		}, options);
	}
	/** Logs the browser in: the response sets the cookie. */
	async logIn(request, options) {
		return await this.transport.json("logIn", {
			path: void 0,
			body: request
		}, options);
	}
	/** Ends a log-in by its `uuid`. */
	async logOut(uuid, options) {
		const input = { path: { uuid } };
		await sendChange(this.transport, "logOut", input, {
			options,
			doneBefore: ["Unauthorized", "TokenNotFound"]
		});
	}
	/** The log-ins of the caller that have not ended, newest first. */
	list(options) {
		return this.transport.list("listLogIns", "log_ins", { path: void 0 }, options);
	}
	/** Ends all log-ins of the caller except this one. */
	async logOutOthers(options) {
		await sendIdempotent(this.transport, "logOutOthers", { path: void 0 }, options);
	}
	/** Changes the password of the caller, which ends all log-ins. */
	async changePassword(request, options) {
		await this.transport.json("changePassword", {
			path: void 0,
			body: request
		}, options);
	}
	/** Begins the log-in of a command line, which a user confirms in a browser at `/cli-login/{token}`. */
	async beginCli(options) {
		return await this.transport.json("beginCliLogin", { path: void 0 }, options);
	}
	/** Completes the log-in of a command line with the code that the page has shown. */
	async completeCli(token, code, options) {
		return await this.transport.json("completeCliLogin", {
			path: { token },
			body: { code }
		}, options);
	}
};
// client/services.ts
/** Environments, settings and spawn tokens of services. */
/** Environments of services: named defaults of their backends. */
var Environments = class extends EndpointGroup {
	/** The environments of a service, `default` among them. */
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
	/** Deletes an environment. Its backends keep running. */
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
/** Settings of services: the defaults of their backends. */
var Settings = class extends EndpointGroup {
	/** The settings of a service. Only the names of its secrets are readable. */
	async get(service, options) {
		return await this.transport.json("serviceSettings", { path: servicePath(service) }, options);
	}
	/**
	* Changes settings of a service, including its environment variables and secrets, for backends that are spawned from now on. Omitted
	* fields stay unchanged; `null` restores the default, or deletes a variable.
	*/
	async change(service, change, options) {
		const input = {
			path: servicePath(service),
			body: change
		};
		await sendIdempotent(this.transport, "changeServiceSettings", input, options);
	}
	/** Whether the images of a service can be pulled without a token. */
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
/** Spawn tokens, with which pages spawn backends without an access token. */
var SpawnTokens = class extends EndpointGroup {
	/** Creates a spawn token of a service. All spawns with it have these options. */
	async create(service, spawn = {}, options) {
		const input = {
			path: servicePath(service),
			body: spawn
		};
		return (await this.transport.json("earliestCreateSpawnToken", input, options)).token;
	}
	/** Spawns a backend. Only environment variables that begin with `PLATFORM_` can be set. Needs no access token. */
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
/** The client of the service API. */
/** Services are named `<account>/<service>`, as their images are. Backends are named by their ID, `backend_id` of a connect. */
var BerthClient = class {
	environments;
	settings;
	spawnTokens;
	accounts;
	tokens;
	trustRules;
	/** The nodes of the platform, for administrators. */
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
	/**
	* Gets a connection URL to the backend that holds a key, or to a new backend.
	*
	* With a key, the call is retried when no response arrives: the second request finds the backend of the first (and reports
	* `spawned: false`). Without a key it is not retried, because each request would start a backend.
	*/
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
	/** The current status of a backend. Needs no access token. */
	async status(backend, options) {
		return await this.#transport.json("backendStatus", { path: { backend_id: backend } }, options);
	}
	/**
	* The past statuses of a backend, then each new status until it is `terminated`. Needs no access token. Reconnects by itself; no
	* status arrives twice.
	*/
	statuses(backend, options) {
		return statusesOf(this.#transport, backend, options);
	}
	/**
	* Waits until a backend is ready, and returns that status. Rejects with the code `BackendEnded` when it ends before, and `TimedOut`
	* after `timeoutMs`. Needs no access token.
	*/
	async waitUntilReady(backend, options = {}) {
		return await untilReady(this.#transport, backend, options);
	}
	/** Waits until a backend is `terminated`, and returns that status. Needs no access token. */
	async waitUntilTerminated(backend, options = {}) {
		return await untilTerminated(this.#transport, backend, options);
	}
	/**
	* The log of a backend: the stored lines, then, unless `follow` is false, each new line until it has ended. Reconnects by itself; no
	* line arrives twice.
	*/
	logs(backend, options) {
		return logOf(this.#transport, backend, options);
	}
	/** The resource usage of a backend, every second until it has ended. Reconnects by itself. */
	metrics(backend, options) {
		return metricsOf(this.#transport, backend, options);
	}
	/** Stops a backend: with SIGTERM, or by force if `hard` is true. Resolves when the signal was sent, before the backend has ended. */
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
	/** Stops all backends of a service that were spawned before a time, or only counts them. */
	async stopBackends(service, request, options) {
		const input = {
			path: servicePath(service),
			body: request
		};
		return await sendIdempotent(this.#transport, "terminateBackends", input, options);
	}
	/** A backend and its status history. */
	async backend(backend, options) {
		return await this.#transport.json("backend", { path: { backend_id: backend } }, options);
	}
	/** The traffic of a backend so far; at most a few seconds old. */
	async traffic(backend, options) {
		return await this.#transport.json("backendTraffic", { path: { backend_id: backend } }, options);
	}
	/** The backends of a service, newest first; `start` and `end` limit the time of their creation. */
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
	/** The running backends of an account, newest first. */
	runningBackends(account, options) {
		return this.#transport.list("accountBackends", "running_backends", { path: { account } }, options);
	}
	/** The names of an account's services, without the account. */
	services(account, options) {
		return this.#transport.list("listServices", "services", { path: { account } }, options);
	}
	/** A service and its environments. */
	async service(service, options) {
		return await this.#transport.json("service", { path: servicePath(service) }, options);
	}
	/** Creates a service. */
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
	/** Deletes a service: it accepts no connects from now on, its backends are stopped, and its images deleted. */
	async deleteService(service, options) {
		const input = { path: servicePath(service) };
		await sendChange(this.#transport, "deleteService", input, {
			options,
			doneBefore: ["ServiceNotFound"]
		});
	}
	/** The images of a service, newest first. */
	images(service, options) {
		return this.#transport.list("serviceImages", "images", { path: servicePath(service) }, options);
	}
	/** Sets the image that new backends run by default: a tag or a digest. */
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
	/** The name with which to tag an image of a service before `docker push`. */
	async imageName(service, options) {
		return (await this.#transport.json("imageName", { path: servicePath(service) }, options)).imageName;
	}
	/**
	* Uploads an image without Docker: the bytes of an archive of `docker save`, or of an OCI layout as a tar. Creates the service if
	* there is none. The upload is never retried.
	*/
	async uploadImage(service, upload) {
		return await uploadArchive(this.#transport, servicePath(service), upload);
	}
	/** Downloads an image as an archive for `docker load` and other tools. Resolves with the response when its head has arrived. */
	async downloadImage(service, digest, options = {}) {
		return await downloadArchive(this.#transport, {
			...servicePath(service),
			digest
		}, options);
	}
	/**
	* Waits until a user has confirmed the log-in of a command line in a browser (`beginCliLogin`). Resolves with `expired` if the log-in
	* expires first.
	*/
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
	/** Calls any endpoint that answers with JSON, by its name in the OpenAPI document. */
	async call(name, input, options) {
		return await this.#transport.json(name, input, options);
	}
};
// action/failure.ts
/** A failure whose message says what to do, and is reported without a stack trace. */
var Failure = class extends Error {
	name = "Failure";
};
// action/push/docker-login.ts
/** A separate docker configuration for this step, so that other steps do not have the log-in. */
/** The state with the path of the folder, for the post step. */
const stateName$1 = "docker-config";
/** Folders of a docker configuration with engines, builders and plug-ins. */
const sharedFolders = [
	"contexts",
	"cli-plugins",
	"buildx"
];
/** Logs in, calls `work` with an environment in which docker uses the log-in, and deletes the log-in. */
async function withLogIn(login, { env, workflow }, work) {
	const folder = await logIn(login, env, workflow);
	try {
		return await work({
			...env,
			DOCKER_CONFIG: folder
		});
	} finally {
		await rm(folder, {
			recursive: true,
			force: true
		});
	}
}
/** Deletes the log-in of a step that was killed before it could do so. */
async function logOut(workflow) {
	const folder = workflow.state(stateName$1);
	if (folder !== "") await rm(folder, {
		recursive: true,
		force: true
	});
}
/** Writes the configuration, and returns its folder. */
async function logIn(login, env, workflow) {
	const own = env["DOCKER_CONFIG"] || join(env["HOME"] || homedir(), ".docker");
	const folder = await mkdtemp(join(env["RUNNER_TEMP"] || tmpdir(), "berth-docker-"));
	workflow.saveState(stateName$1, folder);
	await mkdir(join(own, "buildx"), { recursive: true });
	for (const name of sharedFolders) if (existsSync(join(own, name))) await symlink(join(own, name), join(folder, name));
	const config = withLogin(await readConfig(own), login, workflow);
	await writeFile(join(folder, "config.json"), JSON.stringify(config), { mode: 384 });
	return folder;
}
/** Adds a log-in, and keeps those of the job, which builds need to pull their base images. */
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
// action/push/program.ts
/** Runs other programs, never through a shell. */
/** Runs a program to its end, and returns its output. */
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
/** Runs a program whose output goes to the log. Returns its exit code. */
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
/** The git commit of a workflow run, and the labels of its images. */
/** Reads the commit from the variables of the runner, and its message from the event or from git. */
async function currentCommit(env, signal) {
	const hash = env["GITHUB_SHA"] ?? "";
	const repository = env["GITHUB_REPOSITORY"] ?? "";
	return {
		hash,
		branch: env["GITHUB_HEAD_REF"] || env["GITHUB_REF_NAME"] || "",
		repository,
		message: messageOfEvent(env, hash) ?? await messageOfGit(env, hash, signal),
		source: repository === "" ? "" : `${env["GITHUB_SERVER_URL"] ?? "https://github.com"}/${repository}`
	};
}
/** The four labels from which the platform reads the commit, and those of OCI. */
function commitLabels({ hash, branch, repository, message, source }) {
	return Object.fromEntries(Object.entries({
		hash,
		branch,
		repository,
		message,
		"org.opencontainers.image.revision": hash,
		"org.opencontainers.image.ref.name": branch,
		"org.opencontainers.image.source": source
	}).filter(([, value]) => value !== ""));
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
// action/id-token.ts
/** The ID token of a job, and the deploy token that the API returns for it. */
/** If GitHub answers, it does so in less than a second. */
const timeoutMs$2 = 15e3;
/** GitHub's service has short outages. */
const attempts = 3;
/** Trades the ID token of the job for a deploy token. Both are masked. */
async function deployToken({ host, account }, { env, workflow, signal }) {
	const url = env["ACTIONS_ID_TOKEN_REQUEST_URL"];
	const secret = env["ACTIONS_ID_TOKEN_REQUEST_TOKEN"];
	if (!url || !secret) throw new Failure("token: Set it, or give the job \"permissions: id-token: write\" and the account a trust rule");
	const idToken = await requestIdToken(audienceUrl(url, host), secret, signal);
	workflow.mask(idToken);
	const client = new BerthClient({ url: host });
	try {
		const deploy = await client.trustRules.exchange(account, idToken, { signal });
		workflow.mask(deploy.token);
		return deploy;
	} catch (error) {
		if (!(error instanceof BerthError)) throw error;
		throw new Failure(`The account ${account} has not accepted this job: ${error.message}`, { cause: error });
	}
}
/** Sets the address of the API as the audience, so that the API accepts no tokens that were issued for other services. */
function audienceUrl(url, host) {
	const result = new URL(url);
	result.searchParams.set("audience", host);
	return result;
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
		signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs$2)])
	});
	if (!response.ok) throw new Error(`HTTP status ${response.status}`);
	const { value } = await response.json();
	if (typeof value !== "string" || value === "") throw new Error("the response has no token");
	return value;
}
// client/tools/registry-access.ts
/** Access to the registry, for the command line and the action. It is not part of the client's npm package. */
const loopback = /^(?:localhost|[\w.-]+\.localhost|127(?:\.\d+){3}|\[::1\])$/;
/** Whether the host name or address of a URL is this machine. */
function isLoopback(hostname) {
	return loopback.test(hostname);
}
/** The URL of a registry: plain HTTP on this machine, as docker does, and on the host of an API without encryption; otherwise HTTPS. */
function registryUrl(registry, apiUrl) {
	const { hostname } = new URL(`http://${registry}`);
	const api = new URL(apiUrl);
	return `${isLoopback(hostname) || api.hostname === hostname && api.protocol === "http:" ? "http" : "https"}://${registry}`;
}
/** Requests a grant (the token specification of distribution). Returns the answer, or `undefined` if the server is not Berth's registry. */
async function requestGrant({ url, name, action, token, send }) {
	const challenge = (await send(`${url}/v2/`, {})).headers.get("www-authenticate") ?? "";
	const [, realm = "", service = ""] = /realm="([^"]+)",service="([^"]+)"/.exec(challenge) ?? [];
	if (realm === "" || new URL(realm).origin !== new URL(url).origin) return void 0;
	const [account = ""] = name.split("/");
	const query = new URLSearchParams({
		service,
		scope: `repository:${name}:${action}`
	});
	const authorization = `Basic ${Buffer.from(`${account}:${token}`).toString("base64")}`;
	return await send(`${realm}?${query.toString()}`, { headers: { authorization } });
}
// action/inputs.ts
/** The inputs of the action. The runner applies the defaults of `action.yml`. */
/** Reads only the token, so that it can be masked before anything else happens. */
function tokenInput(env) {
	return input(env, "token");
}
/** Reads the inputs. Throws one failure with all problems. */
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
/** Reads an input; undefined if it is empty. */
function input(env, name) {
	const value = env[`INPUT_${name.replaceAll(" ", "_").toUpperCase()}`]?.trim();
	return value === "" ? void 0 : value;
}
function singleLine(name, value) {
	if (value !== void 0 && /\s/.test(value)) throw new Failure(`${name}: It must not contain blanks or line breaks`);
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
/** Parses a boolean of the core schema of YAML 1.2, as other actions do. */
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
/** Uploads an archive of an image, without Docker. */
/** Uploads an archive once for each tag, and returns the digest. The API checks every digest in the archive. */
async function pushArchive(path, { client, service, tags, signal }) {
	const type = await typeOf(path);
	let image;
	for (const tag of tags) {
		const file = createReadStream(path);
		const archive = Readable.toWeb(file);
		try {
			image = await client.uploadImage(service, {
				archive,
				type,
				tag,
				signal
			});
		} finally {
			file.destroy();
		}
	}
	return image?.digest ?? "";
}
/** Determines the type from the magic number of gzip or zstd (RFC 1952, RFC 8878). */
async function typeOf(path) {
	try {
		await using file = await open(path);
		const { buffer } = await file.read(Buffer.alloc(4), 0, 4, 0);
		if (buffer.subarray(0, 2).equals(Buffer.from("1f8b", "hex"))) return "application/gzip";
		return buffer.equals(Buffer.from("28b52ffd", "hex")) ? "application/zstd" : "application/x-tar";
	} catch (error) {
		const { code, message } = error;
		throw new Failure(`archive: Cannot read ${path}: ${code === "ENOENT" ? "it does not exist" : code === "EISDIR" ? "it is a folder" : message}`, { cause: error });
	}
}
// action/push/docker.ts
/** Builds images with buildx, or with docker if there is no buildx, and pushes them. */
/** Builds an image and pushes it with all tags. Returns its digest. */
async function buildAndPush(build, labels, push) {
	const args = [
		...targets(push).flatMap((target) => ["--tag", target]),
		...build.file === void 0 ? [] : ["--file", build.file],
		...build.platforms.length === 0 ? [] : ["--platform", build.platforms.join(",")],
		...build.buildArgs.flatMap((each) => ["--build-arg", each]),
		...Object.entries(labels).flatMap(([name, value]) => ["--label", `${name}=${value}`]),
		"--",
		build.context
	];
	if (await hasBuildx(push)) return await buildWithBuildx(args, push);
	if (build.platforms.length > 1) throw new Failure("platforms: More than one platform needs buildx");
	if (await push.show(() => showProgram("docker", ["build", ...args], push)) !== 0) throw buildFailed();
	return await pushTags(push);
}
/** Pushes an image of the engine with all tags. Returns its digest. */
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
async function buildWithBuildx(args, push) {
	const folder = await mkdtemp(join(push.env["RUNNER_TEMP"] || tmpdir(), "berth-build-"));
	try {
		const metadata = join(folder, "metadata.json");
		const command = [
			"buildx",
			"build",
			"--push",
			"--progress",
			"plain",
			"--metadata-file",
			metadata,
			...args
		];
		if (await push.show(() => showProgram("docker", command, push)) !== 0) throw buildFailed();
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
async function pushTags(push) {
	for (const target of targets(push)) if (await push.show(() => showProgram("docker", ["push", target], push)) !== 0) throw new Failure(`docker push of ${target} failed, see its output`);
	return await pushedDigest(push);
}
/** The digest of a pushed image in the registry, which the engine stores after the push. */
async function pushedDigest(push) {
	const [target = ""] = targets(push);
	const { stdout } = await runProgram("docker", [
		"image",
		"inspect",
		"--format",
		"{{range .RepoDigests}}{{println .}}{{end}}",
		target
	], push);
	const found = stdout.split("\n").findLast((line) => line.startsWith(`${push.repository}@`));
	if (found === void 0) throw new Failure(`Docker does not report the digest of ${target}`);
	return found.slice(push.repository.length + 1);
}
function targets({ repository, tags }) {
	return tags.map((tag) => `${repository}:${tag}`);
}
function buildFailed() {
	return new Failure("The build failed, see its output");
}
// action/rollout/log-lines.ts
/** Enough for a stack trace. */
const maxLines = 50;
/** A log that can be read arrives within seconds. */
const timeoutMs$1 = 1e4;
/** Reads the last lines. Reports an error as a line, because the caller already reports another failure. */
async function lastLogLines(client, backend) {
	const lines = [];
	try {
		for await (const { line } of client.logs(backend, {
			follow: false,
			signal: AbortSignal.timeout(timeoutMs$1)
		})) {
			lines.push(line);
			if (lines.length > maxLines) lines.shift();
		}
		return lines;
	} catch (error) {
		return [...lines, `(The log cannot be read: ${error instanceof Error ? error.message : String(error)})`];
	}
}
// action/rollout/rollout.ts
/** Sets the image of an environment, waits until a backend of it is ready, and restores the previous image if none becomes ready. */
/** After a cancellation, the runner waits for 7.5 s before it kills the step. */
const rollbackTimeoutMs = 5e3;
async function rollOut(rollout) {
	const { client, workflow, inputs, service, digest, signal } = rollout;
	const { environment } = inputs;
	await client.setImage(service, digest, {
		environment,
		signal
	});
	workflow.info(`New backends of ${service}/${environment} run ${digest}`);
	if (!inputs.waitForReady) return void 0;
	try {
		return await verify(rollout);
	} catch (error) {
		await rollBack(rollout);
		throw error;
	}
}
/** Connects to a new backend, and waits until it is ready. Requests the digest, because another deployment may set another image. */
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
	} catch (error) {
		signal.throwIfAborted();
		throw await notReady(rollout, backend, error);
	} finally {
		if (signal.aborted) await client.stop(backend, { timeoutMs: rollbackTimeoutMs }).catch(() => {});
	}
	workflow.info(`The backend ${backend} is ready`);
	return session;
}
/** Prints the log of a backend, and stops it. Returns the failure. */
async function notReady({ client, workflow, inputs }, backend, error) {
	const problem = await client.status(backend).then((status) => status.problem, () => void 0);
	await workflow.group(`The last lines of the log of ${backend}`, async () => {
		for (const line of await lastLogLines(client, backend)) workflow.info(line);
	});
	await client.stop(backend, { hard: true }).catch(() => {});
	const seconds = inputs.readyTimeoutMs / 1e3;
	const isLate = error instanceof BerthError && error.code === "TimedOut";
	const what = isLate ? `was not ready within ${seconds} seconds` : "ended before it was ready";
	if (!isLate && !(error instanceof BerthError && error.code === "BackendEnded")) throw error;
	return new Failure(`The backend ${backend} ${what}${problem === void 0 ? "" : `: ${problem}`}`, { cause: error });
}
/** Restores the previous image, unless another deployment has set a different one. */
async function rollBack({ client, workflow, inputs, service, digest, previous }) {
	if (previous === void 0) {
		if (inputs.rollbackOnFailure) workflow.warning(`${service} has no previous image, so ${digest} stays`);
		return;
	}
	const { environment } = inputs;
	const options = { timeoutMs: rollbackTimeoutMs };
	try {
		const current = await environmentImage(client, service, {
			environment,
			...options
		});
		if (current !== digest) {
			workflow.warning(`No rollback: another deployment has set ${service}/${environment} to ${current}`);
			return;
		}
		await client.setImage(service, previous, {
			environment,
			...options
		});
		workflow.notice(`Rolled back: new backends of ${service}/${environment} run ${previous} again`);
	} catch (error) {
		const why = error instanceof Error ? error.message : String(error);
		workflow.error(`The rollback failed, so new backends still run ${digest}: ${why}`);
	}
}
/**
* The digest that new backends of an environment run; undefined if there is none. Call it before the push, which may move the tag of the
* environment.
*/
async function digestBefore(client, service, options) {
	const current = await environmentImage(client, service, options).catch((error) => {
		if (error instanceof BerthError && error.code === "ServiceNotFound") return void 0;
		if (error instanceof BerthError && error.code === "Forbidden") throw new Failure("rollback-on-failure: The token needs the scope read", { cause: error });
		throw error;
	});
	if (current === void 0 || current.startsWith("sha256:")) return current;
	for await (const { tag, digest } of client.images(service, {
		pageSize: 100,
		signal: options.signal
	})) if (tag === current) return digest;
}
async function environmentImage(client, service, { environment, ...options }) {
	const { environments } = await client.service(service, options);
	const found = environments.find(({ name }) => name === environment);
	if (!found) throw new Failure(`environment: The service ${service} has no environment "${environment}"`);
	return found.image_tag;
}
function explain(error) {
	if (!(error instanceof BerthError && error.code === "Forbidden")) throw error;
	throw new Failure("wait-for-ready: The token needs the scope connect", { cause: error });
}
// action/push/image-size.ts
/** The size of an image in the registry. */
const manifestTypes = [
	"application/vnd.oci.image.manifest.v1+json",
	"application/vnd.oci.image.index.v1+json",
	"application/vnd.docker.distribution.manifest.v2+json",
	"application/vnd.docker.distribution.manifest.list.v2+json"
].join(", ");
/** Short, because the summary is complete without the size. */
const timeoutMs = 1e4;
/** The size of an image in bytes, of all its platforms together. Undefined if the token may not read the image. */
async function imageSize({ repository, digest }, access) {
	const [registry = "", ...path] = repository.split("/");
	const signal = AbortSignal.any([access.signal, AbortSignal.timeout(timeoutMs)]);
	const send = async (url, init) => await fetch(url, {
		...init,
		signal
	});
	try {
		const [url, name] = [registryUrl(registry, access.host), path.join("/")];
		const answer = await requestGrant({
			url,
			name,
			action: "pull",
			token: access.token,
			send
		});
		if (!answer?.ok) return void 0;
		const { token: grant } = await answer.json();
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
/** An HTML table without blank lines, so that GitHub does not interpret Markdown in a commit message. */
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
/** Also escapes Markdown, in case a renderer interprets it here. */
function escaped(text) {
	return text.replaceAll(/[^\w .,/:()+-]/gu, (character) => `&#${character.codePointAt(0)};`);
}
function megabytes(bytes) {
	return `${(bytes / 1e6).toFixed(1)} MB`;
}
// action/run.ts
/** The step: pushes an image to the registry, and sets it as the image of new backends. */
/** Deploys. Rejects with the error to report. */
async function deploy({ env, workflow, signal }) {
	const startedAt = performance.now();
	maskToken(workflow, tokenInput(env));
	const inputs = readInputs(env);
	const token = inputs.token ?? (await deployToken(inputs, {
		env,
		workflow,
		signal
	})).token;
	const client = new BerthClient({
		url: inputs.host,
		token
	});
	const service = `${inputs.account}/${inputs.service}`;
	const commit = await currentCommit(env, signal);
	const deployment = {
		env,
		workflow,
		signal,
		inputs,
		token,
		client,
		service,
		commit
	};
	const { environment, tags, rollbackOnFailure } = inputs;
	const previous = rollbackOnFailure ? await digestBefore(client, service, {
		environment,
		signal
	}) : void 0;
	const pushed = await workflow.group("Push the image", async () => await push(deployment));
	const { repository, digest } = pushed;
	workflow.setOutput("digest", digest);
	workflow.setOutput("image", `${repository}@${digest}`);
	const verified = await rollOut({
		client,
		workflow,
		inputs,
		service,
		digest,
		previous,
		signal
	});
	workflow.setOutput("url", verified?.url ?? "");
	workflow.setOutput("backend-id", verified?.backend_id ?? "");
	const backend = verified?.backend_id;
	const sizeBytes = await imageSize(pushed, {
		token,
		host: inputs.host,
		signal
	});
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
/** Masks the token, and also its part without the account. */
function maskToken(workflow, token) {
	for (const part of [token ?? "", token?.slice(token.indexOf(".") + 1) ?? ""]) for (const line of part.split(/\s+/)) if (line.length > 3) workflow.mask(line);
}
/** Pushes or uploads the image. */
async function push(deployment) {
	const { client, env, workflow, signal, inputs, service, token } = deployment;
	const { source, tags } = inputs;
	if (source.kind === "archive") {
		const digest = await pushArchive(source.path, {
			client,
			service,
			tags,
			signal
		});
		return {
			repository: await client.imageName(service, { signal }),
			digest
		};
	}
	const repository = await imageName(deployment);
	const login = {
		registry: repository.slice(0, repository.indexOf("/")),
		account: inputs.account,
		token
	};
	const show = async (work) => await workflow.withoutCommands(work);
	return {
		repository,
		digest: await withLogIn(login, {
			env,
			workflow
		}, async (dockerEnv) => {
			const to = {
				env: dockerEnv,
				signal,
				repository,
				tags,
				show
			};
			if (source.kind === "image") return await pushImage(source.image, to);
			return await buildAndPush(source.build, commitLabels(deployment.commit), to);
		})
	};
}
/** The name of the service's images in the registry. Creates the service if it does not exist. */
async function imageName({ client, service, signal, workflow }) {
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
/**
* The interface of GitHub's runner for actions: commands in the log, and files for outputs, state and the summary.
* https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
*/
var Workflow = class {
	#io;
	constructor(io) {
		this.#io = io;
	}
	/** Makes the runner replace a secret in the log with `***`. */
	mask(secret) {
		if (secret !== "") this.#command("add-mask", secret);
	}
	/** Prints text that cannot contain commands or control a terminal. */
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
	/** Folds the output of `work`. */
	async group(name, work) {
		this.#command("group", plain(name));
		try {
			return await work();
		} finally {
			this.#command("endgroup", "");
		}
	}
	/** Makes the runner ignore commands in the output of `work`, because builds print text from files and commit messages. */
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
	/** Saves a value for the post step, which reads it with `state`. */
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
/** Formats an entry of a command file. The delimiter is random, so that a value cannot end its entry and add others. */
function keyed(name, value) {
	const end = `end-${randomUUID()}`;
	return `${name}<<${end}\n${value}\n${end}\n`;
}
/** Text without control characters other than line breaks and tabs. */
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
/** The program of the action. The runner starts it twice: for the step, and after the job to delete the Docker log-in. */
/** A state that the step saves, so that the post step can be distinguished from it. */
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
function messageOf(error) {
	if (error instanceof BerthError) {
		const id = error.id ? ` (request ${error.id})` : "";
		return `${error.code}: ${error.message}${id}`;
	}
	if (error instanceof Failure) return error.message;
	return error instanceof Error ? error.stack ?? error.message : String(error);
}
export {};
