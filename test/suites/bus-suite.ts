/** The suite that every bus driver passes. */
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { Bus, Topic } from '../../core/bus/bus.ts';

const counted: Topic<{ count: number }> = { name: 'counted', message: z.strictObject({ count: z.int() }) };
const named: Topic<{ name: string }> = { name: 'named', message: z.strictObject({ name: z.string() }) };

/** Declares the tests of a driver; `open` connects to a new bus. */
export function describeBus(name: string, open: () => Promise<Bus>): void {
  const busTest = test.extend<{ bus: Bus }>({
    // oxlint-disable-next-line no-empty-pattern -- Vitest reads the needed fixtures from the pattern
    bus: async ({}, use) => {
      await using bus = await open();
      await use(bus);
    },
  });

  describe(`${name}: bus`, () => {
    busTest('delivers messages to all listeners of their topic, in order', async ({ bus }) => {
      const first = inbox<{ count: number }>();
      const second = inbox<{ count: number }>();
      const other = inbox<{ name: string }>();
      await bus.subscribe(counted, first.listener);
      await bus.subscribe(counted, second.listener);
      await bus.subscribe(named, other.listener);
      const published = Array.from({ length: 100 }, (_, count) => ({ count }));
      for (const message of published) await bus.publish(counted, message);
      await bus.publish(named, { name: 'end' });
      await Promise.all([first.has(100), second.has(100), other.has(1)]);
      expect(first.messages).toStrictEqual(published);
      expect(second.messages).toStrictEqual(published);
      expect(other.messages).toStrictEqual([{ name: 'end' }]);
    });

    busTest('keeps the order of concurrent publishes', async ({ bus }) => {
      const { messages, listener, has } = inbox<{ count: number }>();
      await bus.subscribe(counted, listener);
      await Promise.all(Array.from({ length: 100 }, (_, count) => bus.publish(counted, { count })));
      await has(100);
      expect(messages.map(({ count }) => count)).toStrictEqual(Array.from({ length: 100 }, (_, count) => count));
    });

    busTest('does not run listeners within publish', async ({ bus }) => {
      const { messages, listener, has } = inbox<{ count: number }>();
      await bus.subscribe(counted, listener);
      const publishing = bus.publish(counted, { count: 1 });
      expect(messages).toStrictEqual([]);
      await publishing;
      await has(1);
    });

    busTest('keeps delivering when a listener throws', async ({ bus }) => {
      const { messages, listener, has } = inbox<{ count: number }>();
      await bus.subscribe(counted, () => {
        throw new Error('Listener failed');
      });
      await bus.subscribe(counted, listener);
      await bus.publish(counted, { count: 1 });
      await bus.publish(counted, { count: 2 });
      await has(2);
      expect(messages).toStrictEqual([{ count: 1 }, { count: 2 }]);
    });

    busTest('delivers nothing to a listener that has unsubscribed', async ({ bus }) => {
      const left = inbox<{ count: number }>();
      const stays = inbox<{ count: number }>();
      const subscription = await bus.subscribe(counted, left.listener);
      await bus.subscribe(counted, stays.listener);
      await bus.publish(counted, { count: 1 });
      await Promise.all([left.has(1), stays.has(1)]);
      await subscription[Symbol.asyncDispose]();
      await subscription[Symbol.asyncDispose]();
      await bus.publish(counted, { count: 2 });
      await stays.has(2);
      expect(left.messages).toStrictEqual([{ count: 1 }]);
    });

    busTest(
      'delivers nothing after a listener has unsubscribed, not even messages published before',
      async ({ bus }) => {
        const left = inbox<{ count: number }>();
        const stays = inbox<{ count: number }>();
        const subscription = await bus.subscribe(counted, left.listener);
        await bus.subscribe(counted, stays.listener);
        await bus.publish(counted, { count: 1 });
        await subscription[Symbol.asyncDispose]();
        const deliveredBefore = left.messages.length;
        await stays.has(1);
        expect(left.messages).toHaveLength(deliveredBefore);
      },
    );

    busTest('does not deliver messages that were published before the subscription', async ({ bus }) => {
      const { messages, listener, has } = inbox<{ count: number }>();
      await bus.publish(counted, { count: 1 });
      await bus.subscribe(counted, listener);
      await bus.publish(counted, { count: 2 });
      await has(1);
      expect(messages).toStrictEqual([{ count: 2 }]);
    });

    busTest('allows listeners to publish', async ({ bus }) => {
      const { messages, listener, has } = inbox<{ count: number }>();
      await bus.subscribe(counted, listener);
      await bus.subscribe(counted, ({ count }) => {
        if (count < 5) void bus.publish(counted, { count: count + 1 });
      });
      await bus.publish(counted, { count: 1 });
      await has(5);
      expect(messages.map(({ count }) => count)).toStrictEqual([1, 2, 3, 4, 5]);
    });

    busTest('delivers a message as it was when it was published', async ({ bus }) => {
      const { messages, listener, has } = inbox<{ count: number }>();
      await bus.subscribe(counted, listener);
      const message = { count: 1 };
      const publishing = bus.publish(counted, message);
      message.count = 2;
      await publishing;
      await has(1);
      expect(messages).toStrictEqual([{ count: 1 }]);
    });

    busTest('rejects a message that does not match its topic', async ({ bus }) => {
      await expect(bus.publish(counted, { count: 1.5 })).rejects.toThrow(z.ZodError);
      await expect(bus.publish(counted, { count: 1, more: 2 } as { count: number })).rejects.toThrow(z.ZodError);
    });

    busTest('rejects every call once it is closed', async ({ bus }) => {
      await bus.ping();
      await bus[Symbol.asyncDispose]();
      await bus[Symbol.asyncDispose]();
      await expect(bus.ping()).rejects.toThrow('The bus is closed');
      await expect(bus.publish(counted, { count: 1 })).rejects.toThrow('The bus is closed');
      await expect(bus.subscribe(counted, () => {})).rejects.toThrow('The bus is closed');
    });
  });
}

/** Collects messages; `has` resolves when `count` messages have arrived. */
function inbox<Message>(): {
  messages: Message[];
  listener: (message: Message) => void;
  has: (count: number) => Promise<void>;
} {
  const messages: Message[] = [];
  return {
    messages,
    listener: (message) => void messages.push(message),
    has: async (count) => await expect.poll(() => messages.length, { interval: 5, timeout: 50_000 }).toBe(count),
  };
}
