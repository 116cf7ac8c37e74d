import { EngineError } from './docker/engine-error.ts';
import type { Engine } from './docker/engine.ts';

/** An engine whose failed calls are counted. An image that is not there yet is no failure. */
export function countedEngine(engine: Engine, onFailure: (operation: string) => void): Engine {
  return {
    ...engine,
    containers: counted(engine.containers, 'container', onFailure),
    images: counted(engine.images, 'image', onFailure),
    network: counted(engine.network, 'network', onFailure),
    [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose](),
  };
}

function counted<Noun extends object>(noun: Noun, name: string, onFailure: (operation: string) => void): Noun {
  return new Proxy(noun, {
    get(target, property) {
      const member: unknown = Reflect.get(target, property, target);
      if (typeof member !== 'function') return member;
      return (...args: unknown[]): unknown => {
        const result: unknown = Reflect.apply(member, target, args);
        if (result instanceof Promise) {
          result.catch((error: unknown) => {
            if (error instanceof EngineError && error.code !== 'no-image') onFailure(`${name}-${String(property)}`);
          });
        }
        return result;
      };
    },
  });
}
