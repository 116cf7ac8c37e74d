/** Users of the platform, and their log-ins. */
import { sendChange, sendIdempotent } from './changes.ts';
import type { CallOptions } from './changes.ts';
import type {
  ChangePasswordRequest,
  CliLogin,
  CliSession,
  CreateUserRequest,
  Invitation,
  InvitationRequest,
  LogIn,
  LogInRequest,
  Session,
  SetUpRequest,
  UpdateUserRequest,
  User,
} from './contract.ts';
import { EndpointGroup } from './endpoint-group.ts';
import type { ListOptions } from './transport.ts';

/** Users. Only administrators who have logged in may manage them. */
export class Users extends EndpointGroup {
  /** The users of the platform, oldest first. */
  list(options?: ListOptions): AsyncGenerator<User, void, undefined> {
    return this.transport.list('listUsers', 'users', { path: undefined }, options);
  }

  /** Creates a user, who sets a password with the invitation. Only this response contains the invitation. */
  async create(user: CreateUserRequest, options?: CallOptions): Promise<Invitation> {
    return await this.transport.json('createUser', { path: undefined, body: user }, options);
  }

  /** Invites a user to set a new password. Earlier invitations become invalid. */
  async invite(email: string, options?: CallOptions): Promise<Invitation> {
    return await sendIdempotent(this.transport, 'inviteUser', { path: { user_email: email } }, options);
  }

  /** Grants or revokes the rights of an administrator, disables or enables a user. */
  async update(email: string, change: UpdateUserRequest, options?: CallOptions): Promise<void> {
    await sendIdempotent(this.transport, 'updateUser', { path: { user_email: email }, body: change }, options);
  }
}

/** Log-ins of browsers and command lines. In a browser, the session is a cookie, and the client needs no access token. */
export class LogIns extends EndpointGroup {
  /** Creates the first administrator with the set-up code, which the first start writes to its data folder. */
  async setUp(request: SetUpRequest, options?: CallOptions): Promise<void> {
    await this.transport.json('setUp', { path: undefined, body: request }, options);
  }

  /** Sets the password of a user with the code of an invitation. */
  async acceptInvitation(request: InvitationRequest, options?: CallOptions): Promise<void> {
    await this.transport.json('acceptInvitation', { path: undefined, body: request }, options);
  }

  /** Logs the browser in: the response sets the cookie. */
  async logIn(request: LogInRequest, options?: CallOptions): Promise<Session> {
    return await this.transport.json('logIn', { path: undefined, body: request }, options);
  }

  /** Ends a log-in by its `uuid`. */
  async logOut(uuid: string, options?: CallOptions): Promise<void> {
    const input = { path: { uuid } };
    await sendChange(this.transport, 'logOut', input, { options, doneBefore: ['Unauthorized', 'TokenNotFound'] });
  }

  /** The log-ins of the caller that have not ended, newest first. */
  list(options?: ListOptions): AsyncGenerator<LogIn, void, undefined> {
    return this.transport.list('listLogIns', 'log_ins', { path: undefined }, options);
  }

  /** Ends all log-ins of the caller except this one. */
  async logOutOthers(options?: CallOptions): Promise<void> {
    await sendIdempotent(this.transport, 'logOutOthers', { path: undefined }, options);
  }

  /** Changes the password of the caller, which ends all log-ins. */
  async changePassword(request: ChangePasswordRequest, options?: CallOptions): Promise<void> {
    await this.transport.json('changePassword', { path: undefined, body: request }, options);
  }

  /** Begins the log-in of a command line, which a user confirms in a browser at `/cli-login/{token}`. */
  async beginCli(options?: CallOptions): Promise<CliLogin> {
    return await this.transport.json('beginCliLogin', { path: undefined }, options);
  }

  /** Completes the log-in of a command line with the code that the page has shown. */
  async completeCli(token: string, code: string, options?: CallOptions): Promise<CliSession> {
    return await this.transport.json('completeCliLogin', { path: { token }, body: { code } }, options);
  }
}
