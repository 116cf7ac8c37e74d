import { StoreError } from '../../../core/store/store.ts';

/** A call of a method that returns a promise. */
export interface PortCall {
  readonly method: string;
  /** The name of the collection, for calls of a store. */
  readonly collection: string | undefined;
  /** Carries out the call. */
  readonly run: () => Promise<unknown>;
}

export interface Steering {
  /** The store's time. Default: the store's own. */
  readonly now?: () => Date;
  /** What the store reports as `isShared`. Default: the store's own value. */
  readonly isShared?: boolean;
  /** Runs instead of each call: it can count, delay or fail the call, and carries it out with `run`. */
  readonly onCall?: (call: PortCall) => Promise<unknown>;
}

/** Methods that return an iterable, not a promise. */
const iterables = ['list', 'listUploads'];

/** Returns a store or blobs whose clock and calls a test controls. */
export function steered<Port extends object>(port: Port, { now, isShared, onCall }: Steering): Port {
  return new Proxy(port, {
    get: (target, name) => {
      if (name === 'isShared' && isShared !== undefined) return isShared;
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== 'function') return member;
      // A scan calls `find` of the object on which it is called, and so a steered `find`.
      if (name === 'scan') return member;
      if (typeof name === 'symbol' || iterables.includes(name)) return member.bind(target);
      return async (...args: unknown[]): Promise<unknown> => {
        const run = async (): Promise<unknown> =>
          name === 'now' && now ? now() : await Reflect.apply(member, target, args);
        const collection = (args[0] as { readonly name?: string } | undefined)?.name;
        return await (onCall ? onCall({ method: name, collection, run }) : run());
      };
    },
  });
}

/** An `onCall` that fails calls while `isCut` returns true, like a store that cannot be reached. */
export function unreachableWhile(isCut: (call: PortCall) => boolean): NonNullable<Steering['onCall']> {
  return async (call) => {
    if (isCut(call)) throw new StoreError('unavailable', 'The store cannot be reached');
    return await call.run();
  };
}
