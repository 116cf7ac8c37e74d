/** The participants of one board, and the messages between them. */
import { randomBytes } from 'node:crypto';
import { Drawing, toPoint } from './drawing.js';

/** More participants could not follow each other's cursors. */
const maxPeople = 100;

const adjectives = ['Amber', 'Brave', 'Calm', 'Eager', 'Gentle', 'Lucky', 'Merry', 'Quiet', 'Swift', 'Witty'];
const animals = ['Badger', 'Crane', 'Dolphin', 'Fox', 'Heron', 'Lynx', 'Otter', 'Puffin', 'Seal', 'Wren'];

export class Room {
  /** @type {Map<string, { id: string, name: string, hue: number, send: (text: string) => void }>} */
  #people = new Map();
  #joined = 0;
  #drawing;
  #session;
  /** Counts changes of the drawing, so that it is saved only if it has changed. */
  changes = 0;

  constructor(session, strokes) {
    this.#session = session;
    this.#drawing = new Drawing(strokes);
  }

  get strokes() {
    return this.#drawing.strokes;
  }

  get size() {
    return this.#people.size;
  }

  /** Adds a participant. Returns functions to call for each message and at the end, or `undefined` if the room is full. */
  join(verifiedName, send) {
    if (this.#people.size >= maxPeople) return undefined;
    const id = randomBytes(6).toString('base64url');
    // The golden angle keeps the colours of neighbours apart.
    const person = {
      id,
      name: verifiedName ?? this.#inventName(),
      hue: Math.round(this.#joined++ * 137.5) % 360,
      send,
    };
    this.#people.set(id, person);
    send(JSON.stringify({ type: 'welcome', you: id, session: this.#session, strokes: this.strokes }));
    this.#sendParticipants();
    return {
      receive: (text) => this.#receive(person, text),
      leave: () => {
        this.#people.delete(id);
        this.#sendParticipants();
      },
    };
  }

  /** Sends a message to all participants but one. */
  broadcast(message, except) {
    const text = JSON.stringify(message);
    for (const person of this.#people.values()) if (person !== except) person.send(text);
  }

  #receive(person, text) {
    const message = parse(text);
    switch (message?.type) {
      case 'cursor': {
        const point = message.point === null ? null : toPoint(message.point);
        if (point !== undefined) this.broadcast({ type: 'cursor', person: person.id, point }, person);
        return;
      }
      case 'begin': {
        const stroke = this.#isOwn(person, message.id) && this.#drawing.begin(message.id, message);
        if (stroke) this.#changed({ type: 'begin', stroke }, person);
        return;
      }
      case 'extend': {
        const points = this.#isOwn(person, message.id) && this.#drawing.extend(message.id, message.points);
        if (points) this.#changed({ type: 'extend', id: message.id, points }, person);
        return;
      }
      case 'remove':
        if (this.#isOwn(person, message.id) && this.#drawing.remove(message.id)) {
          this.#changed({ type: 'remove', id: message.id }, person);
        }
        return;
      case 'clear':
        this.#drawing.clear();
        this.#changed({ type: 'clear', by: person.name });
    }
  }

  #changed(message, except) {
    this.changes++;
    this.broadcast(message, except);
  }

  /** A stroke's ID begins with the ID of its participant, so that no participant can change the strokes of another. */
  #isOwn(person, id) {
    return typeof id === 'string' && id.length < 64 && id.startsWith(`${person.id}/`);
  }

  #sendParticipants() {
    const people = [...this.#people.values()].map(({ id, name, hue }) => ({ id, name, hue }));
    this.broadcast({ type: 'people', people });
  }

  #inventName() {
    const taken = new Set([...this.#people.values()].map(({ name }) => name));
    const start = randomBytes(2).readUInt16LE();
    for (let i = start; i < start + adjectives.length * animals.length; i++) {
      const name = `${adjectives[i % adjectives.length]} ${animals[Math.floor(i / adjectives.length) % animals.length]}`;
      if (!taken.has(name)) return name;
    }
    return 'Guest';
  }
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
