/** People in the service API: users, their log-ins, and their roles in accounts. */
import { z } from 'zod';
import { accountName } from './names.ts';
import { role } from './roles.ts';
import { timestamp } from './timestamp.ts';

/** The longest address of SMTP (RFC 5321). */
const maxEmailLength = 254;

/** What identifies a user. Hosts without a dot, as in `admin@localhost`, are allowed. */
export const userEmail = z
  .string()
  .max(maxEmailLength, `Too long, use at most ${maxEmailLength} characters`)
  .regex(/^[\w.!#$%&'*+/=?^`{|}~-]+@[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/i, 'Not an e-mail address')
  .meta({ id: 'UserEmail', description: 'The e-mail address of a user; capital and small letters count as the same' });

export const minPasswordLength = 12;

/** Longer texts only cost time. */
const maxPasswordLength = 256;

/** A password. Length alone makes it strong, so there are no rules about kinds of characters (NIST SP 800-63B). */
export const password = z
  .string()
  .refine(
    (text) => Array.from(text).length >= minPasswordLength,
    `Too short, use at least ${minPasswordLength} characters`,
  )
  .refine(
    (text) => Array.from(text).length <= maxPasswordLength,
    `Too long, use at most ${maxPasswordLength} characters`,
  )
  .meta({
    id: 'Password',
    minLength: minPasswordLength,
    maxLength: maxPasswordLength,
    description: `${minPasswordLength} to ${maxPasswordLength} characters of any kind`,
  });

/** A password to check. The limit saves hashing passwords that are too long to be right. */
const anyPassword = z.string().max(4 * maxPasswordLength);

/** A code that a user has received from the platform or an administrator. */
const code = z.string().min(1).max(100);

export const logInRequest = z
  .strictObject({ user_email: userEmail, password: anyPassword })
  .meta({ id: 'LogInRequest' });

export const setUpRequest = z
  .strictObject({
    code: code.meta({
      description: 'The set-up code, which the first start writes to the file `setup-code` of its data folder',
    }),
    user_email: userEmail,
    password,
  })
  .meta({ id: 'SetUpRequest' });

export const invitationRequest = z
  .strictObject({ user_email: userEmail, code, password })
  .meta({ id: 'InvitationRequest' });

export const changePasswordRequest = z
  .strictObject({ current_password: anyPassword, new_password: password })
  .meta({ id: 'ChangePasswordRequest' });

export const cliLogin = z
  .strictObject({
    token: z.string().meta({ description: 'Names the log-in in other requests, and in the page `/cli-login/{token}`' }),
  })
  .meta({ id: 'CliLogin' });

export const cliLoginStatus = z
  .strictObject({ status: z.enum(['ok', 'expired']) })
  .meta({ id: 'CliLoginStatus', description: '`ok`: a user has confirmed the log-in' });

export const completeCliLoginRequest = z
  .strictObject({
    code: z
      .string()
      .max(100)
      .meta({ description: 'The code that the page shows', examples: ['123456'] }),
  })
  .meta({ id: 'CompleteCliLoginRequest' });

export const cliSession = z
  .strictObject({
    uuid: z.string().meta({ description: 'Names the log-in when it is ended' }),
    user_id: z.string(),
    token: z.string().meta({ description: 'A token for all accounts of the user. It is shown only once' }),
    user_email: z.string(),
    user_is_admin: z.boolean(),
  })
  .meta({ id: 'CliSession' });

/** The cookie of a browser's session. With this prefix, browsers accept it only from its own host: no sibling host can set or read it. */
export const sessionCookieName = '__Host-berth-session';

export const sessionObject = z
  .strictObject({
    uuid: z.string().meta({ description: 'Names the log-in in other requests. It is no secret' }),
    user_email: z.string(),
    user_is_admin: z.boolean(),
    accounts: z.array(z.string()),
    expires_at: timestamp,
  })
  .meta({ id: 'Session' });

export const logInObject = z
  .strictObject({
    uuid: z.string().meta({ description: 'Names the log-in when it is ended. It is no secret' }),
    kind: z.enum(['browser', 'command-line']),
    program: z.string().meta({ description: 'What the program calls itself (`User-Agent`)' }),
    is_current: z.boolean().meta({ description: 'Whether it is the log-in that sends the request' }),
    created_at: timestamp,
    last_used_at: timestamp.nullable().meta({ description: 'Exact to a minute' }),
    expires_at: timestamp.nullable(),
  })
  .meta({ id: 'LogIn' });

export type LogInObject = z.infer<typeof logInObject>;

export const authAnswer = z
  .strictObject({
    status: z.literal('ok'),
    accounts: z.array(z.string()).meta({ description: 'The accounts that the token is valid for' }),
    is_admin: z.boolean().meta({ description: 'Whether it is the log-in of an administrator of the platform' }),
  })
  .meta({ id: 'Auth' });

export const createAccountRequest = z
  .strictObject({
    name: accountName,
    owner_email: userEmail.optional().meta({ description: 'The user that becomes owner. Default: the caller' }),
  })
  .meta({ id: 'CreateAccountRequest' });

export const accountObject = z
  .strictObject({ name: z.string(), role: role.meta({ description: 'The role of the caller' }) })
  .meta({ id: 'Account' });

export const createUserRequest = z
  .strictObject({ user_email: userEmail, is_admin: z.boolean().optional() })
  .meta({ id: 'CreateUserRequest' });

export const updateUserRequest = z
  .strictObject({
    is_admin: z.boolean().optional(),
    disabled: z
      .boolean()
      .optional()
      .meta({ description: 'Whether the user is locked out, with all tokens and log-ins' }),
  })
  .meta({ id: 'UpdateUserRequest' });

export const invitation = z
  .strictObject({
    user_email: z.string(),
    url: z.string().meta({ description: 'Where the user sets a password, once. It is shown only once' }),
    expires_at: timestamp,
  })
  .meta({ id: 'Invitation' });

export const userObject = z
  .strictObject({
    user_email: z.string(),
    is_admin: z.boolean(),
    disabled: z.boolean(),
    has_password: z.boolean(),
    created_at: timestamp,
  })
  .meta({ id: 'User' });

export const memberRequest = z.strictObject({ user_email: userEmail, role }).meta({ id: 'MemberRequest' });

export const memberObject = z
  .strictObject({ user_email: z.string(), role, added_at: timestamp })
  .meta({ id: 'Member' });

export type UserObject = z.infer<typeof userObject>;

/** The highest limit, in effect no limit. */
const maxLimit = 1_000_000;

export const limitsObject = z
  .strictObject({
    connects_per_second: z
      .int()
      .meta({ description: 'How many connects a second each API process accepts; 0: no limit' }),
    running_backends: z.int().meta({ description: 'How many backends may run at a time; 0: no limit' }),
  })
  .meta({ id: 'AccountLimits' });

const limit = z.int().min(0).max(maxLimit).nullable().optional();

export const limitsRequest = z.strictObject({ connects_per_second: limit, running_backends: limit }).meta({
  id: 'AccountLimitsRequest',
  description: '0: no limit. null: the default limit. Omitted fields stay unchanged',
});

export const auditObject = z
  .strictObject({
    time: timestamp,
    action: z.string().meta({
      description:
        'The operation, by its `operationId` in this document; on a page, also `confirmCliLogin`; at the registry: `pushManifest`, `deleteManifest`, `deleteTag`, `deleteBlob`',
      examples: ['createService'],
    }),
    details: z.record(z.string(), z.unknown()).meta({ description: 'The target of the operation, and its settings' }),
    user_email: z.string().nullable().meta({ description: 'The user; null: a token of the account' }),
    token_id: z.string().nullable().meta({ description: 'The access token or log-in that the client used' }),
    address: z.string().meta({ description: 'The address of the client' }),
    request_id: z.string().meta({ description: 'The ID of the request, which is in the log' }),
    status: z.int().nullable().meta({ description: 'The HTTP status; null: the process stopped before it was known' }),
  })
  .meta({ id: 'AuditRecord' });

export type AuditObject = z.infer<typeof auditObject>;
