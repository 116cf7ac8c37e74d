/**
 * Bodies that come in many small pieces. docker, for one, sends the layers of an image 32 KiB at a time, several layers at
 * once; each piece wakes the process, and that costs more than the piece is worth. While bodies come at such a pace, their
 * sockets are read only every few milliseconds, all together, for what has gathered. Network cards do the same with their
 * interrupts.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

/** How often gathered sockets are read. Nobody notices in a body of megabytes that it comes so much later. */
const tickMs = 6;

/** After so many ticks it is looked which bodies gather. Long enough that a pause for breath does not count. */
const ticksPerLook = 12;

/** What comes more slowly than this in a tick wakes the process less often than the tick does. */
const leastTickBytes = 8 * 1024;

/** What comes faster than this comes in large pieces. */
const mostTickBytes = 256 * 1024;

/** What all of them must bring together: three pieces of docker's, for which a tick is worth its while. */
const leastTotalBytes = 96 * 1024;

/** After so many looks, and then after twice as many each time, a gathered body goes free for one, to show its own pace. */
const firstTrial = 4;

/** The bodies that a process is receiving. Timers run only while there are some. */
export class GatheredBodies {
  readonly #bodies = new Set<Body>();
  readonly #gathered = new Set<Body>();
  #looking: NodeJS.Timeout | undefined;
  #ticking: NodeJS.Timeout | undefined;

  /** How many are gathered now. */
  get count(): number {
    return this.#gathered.size;
  }

  /** Watches a request whose body is being read, until disposed. */
  watch(request: IncomingMessage): Disposable {
    const body = new Body(request);
    this.#bodies.add(body);
    this.#looking ??= setInterval(() => this.#look(), tickMs * ticksPerLook);
    return {
      [Symbol.dispose]: () => {
        this.#bodies.delete(body);
        this.#release(body);
        if (this.#bodies.size > 0) return;
        clearInterval(this.#looking);
        this.#looking = undefined;
      },
    };
  }

  #look(): void {
    const fit = new Set<Body>();
    let totalBytes = 0;
    for (const body of this.#bodies) {
      const tickBytes = body.bytesSinceLook() / ticksPerLook;
      if (!body.pace.fits(tickBytes, this.#gathered.has(body))) continue;
      fit.add(body);
      totalBytes += tickBytes;
    }
    for (const body of this.#bodies) {
      if (totalBytes >= leastTotalBytes && fit.has(body)) this.#gather(body);
      else this.#release(body);
    }
  }

  #gather(body: Body): void {
    this.#gathered.add(body);
    this.#ticking ??= setInterval(() => this.#tick(), tickMs);
  }

  #release(body: Body): void {
    if (!this.#gathered.delete(body)) return;
    body.open();
    if (this.#gathered.size > 0) return;
    clearInterval(this.#ticking);
    this.#ticking = undefined;
  }

  /** Sockets are open while the event loop polls once: it reads what is there, and does not wait for more. */
  #tick(): void {
    for (const body of this.#gathered) {
      // One whose reader wants no more for now stays shut: to open it would read on all the same.
      if (!body.request.isPaused()) body.open();
    }
    setImmediate(() => {
      for (const body of this.#gathered) body.shut();
    });
  }
}

class Body {
  readonly request: IncomingMessage;
  readonly pace = new Pace();
  readonly #socket: Socket;
  #readBytes: number;
  #isShut = false;

  constructor(request: IncomingMessage) {
    this.request = request;
    this.#socket = request.socket;
    this.#readBytes = request.socket.bytesRead;
  }

  bytesSinceLook(): number {
    const before = this.#readBytes;
    this.#readBytes = this.#socket.bytesRead;
    return this.#readBytes - before;
  }

  /** `pause` and `resume` of a request would not do: with them, it is read until its buffer is full. */
  shut(): void {
    if (this.#isShut) return;
    this.#isShut = true;
    this.#socket.pause();
  }

  open(): void {
    if (!this.#isShut) return;
    this.#isShut = false;
    this.#socket.resume();
  }
}

/**
 * Whether a body is one to be gathered, by what it brings. A sender may have only so much under way before it must wait for
 * its reader. Linux allows it more as soon as it is read in larger portions; where a system does not, the sender would be held
 * back: such a body shows it when it goes free, and is left alone from then on.
 */
export class Pace {
  #looks = 0;
  #nextTrial = firstTrial;
  #mostGatheredBytes = 0;
  #wasHeldBack = false;

  /** Asked at each look, with what a tick has brought since the last one, on average. */
  fits(tickBytes: number, isGathered: boolean): boolean {
    if (isGathered) {
      this.#looks += 1;
      this.#mostGatheredBytes = Math.max(this.#mostGatheredBytes, tickBytes);
    } else if (this.#looks > 0 && tickBytes > 2 * this.#mostGatheredBytes) {
      this.#wasHeldBack = true;
    }
    if (this.#wasHeldBack || tickBytes < leastTickBytes || tickBytes > mostTickBytes) return false;
    if (!isGathered || this.#looks < this.#nextTrial) return true;
    this.#nextTrial *= 2;
    return false;
  }
}
