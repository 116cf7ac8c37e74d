/** The page: draws the strokes of all participants, and sends those of this one. All URLs are relative, because the page has a prefix. */

const board = { width: 1600, height: 1000 };
const inks = ['Ink', 'Red', 'Orange', 'Green', 'Blue', 'Violet'];
const widthsPx = [3, 7, 16];

/** The waits before attempts to reconnect. After the last one, the page reports the failure and waits for the user. */
const retryDelaysMs = [500, 1_000, 2_000, 4_000, 8_000];

const byId = (id) => document.getElementById(id);
const canvas = byId('canvas');
const context = canvas.getContext('2d');

/** Strokes by their ID, in the order in which they were begun. */
const strokes = new Map();
const people = new Map();
const mine = [];
let you;
let socket;
let attempts = 0;
let ended = false;
let current;
let pending = [];
let pendingCursor;
let isFrameRequested = false;
let strokeCount = 0;

connect();
makeTools();
listenToPointer();
new ResizeObserver(fitCanvas).observe(canvas);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
byId('undo').addEventListener('click', undo);
byId('clear').addEventListener('click', () => send({ type: 'clear' }));
byId('about-button').addEventListener('click', toggleAbout);
byId('invite').addEventListener('click', () => void copyLink());
document.addEventListener('keydown', onKey);

function connect() {
  const url = new URL('ws', location.href);
  url.protocol = url.protocol.replace('http', 'ws');
  socket = new WebSocket(url);
  socket.addEventListener('message', ({ data }) => receive(JSON.parse(data)));
  socket.addEventListener('close', () => void reconnect());
}

async function reconnect() {
  people.clear();
  showPeople();
  if (ended || (attempts > 0 && (await hasEnded()))) {
    status('This backend has ended. Connect with the same key again to get the next one, and a new link.');
    return;
  }
  const delayMs = retryDelaysMs[attempts++];
  if (delayMs === undefined) {
    status('The backend does not answer. Reload the page to try again.');
    return;
  }
  status('Connection lost, trying again …');
  setTimeout(connect, delayMs);
}

/** Berth answers 410 for a backend that has ended. That is permanent. */
async function hasEnded() {
  return await fetch('healthz').then(
    (response) => response.status === 410,
    () => false,
  );
}

function receive(message) {
  switch (message.type) {
    case 'welcome':
      attempts = 0;
      you = message.you;
      mine.length = 0;
      strokes.clear();
      for (const stroke of message.strokes) strokes.set(stroke.id, stroke);
      showSession(message.session);
      status('');
      redraw();
      break;
    case 'people':
      people.clear();
      for (const person of message.people) people.set(person.id, person);
      showPeople();
      break;
    case 'cursor':
      moveCursor(message.person, message.point);
      break;
    case 'begin':
      strokes.set(message.stroke.id, message.stroke);
      drawStroke(message.stroke, 0);
      break;
    case 'extend':
      extend(message.id, message.points);
      break;
    case 'remove':
      strokes.delete(message.id);
      redraw();
      break;
    case 'clear':
      strokes.clear();
      mine.length = 0;
      current = undefined;
      redraw();
      status(`${message.by} cleared the board`, 3_000);
      break;
    case 'ending':
      ended = true;
  }
}

function send(message) {
  if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
}

function listenToPointer() {
  canvas.addEventListener('pointerdown', (event) => {
    if (event.button !== 0 || !you) return;
    canvas.setPointerCapture(event.pointerId);
    const stroke = {
      id: `${you}/${strokeCount++}`,
      colour: Number(chosen('colour')),
      width: Number(chosen('width')),
      points: [toBoard(event)],
    };
    current = stroke;
    strokes.set(stroke.id, stroke);
    mine.push(stroke.id);
    drawStroke(stroke, 0);
    send({ type: 'begin', ...stroke });
  });
  canvas.addEventListener('pointermove', (event) => {
    pendingCursor = toBoard(event);
    if (current) pending.push(...(event.getCoalescedEvents?.() ?? [event]).map(toBoard));
    askFrame();
  });
  const finish = () => {
    flush();
    current = undefined;
  };
  canvas.addEventListener('pointerup', finish);
  canvas.addEventListener('pointercancel', finish);
  canvas.addEventListener('pointerleave', () => send({ type: 'cursor', point: null }));
}

/** Sends the movements of the pointer since the last frame in one message. */
function askFrame() {
  if (isFrameRequested) return;
  isFrameRequested = true;
  requestAnimationFrame(() => {
    isFrameRequested = false;
    flush();
    if (pendingCursor) send({ type: 'cursor', point: pendingCursor });
    pendingCursor = undefined;
  });
}

function flush() {
  const points = pending.slice(0, 256);
  pending = [];
  if (!current || points.length === 0) return;
  extend(current.id, points);
  send({ type: 'extend', id: current.id, points });
}

function extend(id, points) {
  const stroke = strokes.get(id);
  if (!stroke) return;
  const from = stroke.points.length - 1;
  stroke.points.push(...points);
  drawStroke(stroke, from);
}

function undo() {
  const id = mine.pop();
  if (id === undefined) return;
  strokes.delete(id);
  send({ type: 'remove', id });
  redraw();
}

function onKey(event) {
  if ((event.ctrlKey || event.metaKey) && event.key === 'z') {
    event.preventDefault();
    undo();
  }
  if (event.key === 'Escape' && !byId('about').hidden) toggleAbout();
}

function fitCanvas() {
  canvas.width = Math.round(canvas.clientWidth * devicePixelRatio);
  canvas.height = Math.round(canvas.clientHeight * devicePixelRatio);
  redraw();
}

function redraw() {
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, canvas.width, canvas.height);
  for (const stroke of strokes.values()) drawStroke(stroke, 0);
  byId('hint').hidden = strokes.size > 0;
}

/** Draws a stroke from one of its points on. */
function drawStroke({ colour, width, points }, from) {
  const scale = canvas.width / board.width;
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.lineCap = 'round';
  context.lineJoin = 'round';
  context.lineWidth = widthsPx[width];
  context.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue(`--ink-${colour}`);
  context.beginPath();
  context.moveTo(...points[from]);
  // Because of the round cap, a line of length zero is a dot.
  for (const point of points.slice(Math.min(from + 1, points.length - 1))) context.lineTo(...point);
  context.stroke();
  byId('hint').hidden = true;
}

function toBoard(event) {
  const { left, top, width, height } = canvas.getBoundingClientRect();
  const x = ((event.clientX - left) / width) * board.width;
  const y = ((event.clientY - top) / height) * board.height;
  return [Math.round(x), Math.round(y)];
}

function moveCursor(id, point) {
  const person = people.get(id);
  const cursor = byId(`cursor-${id}`);
  if (!person || point === null) {
    cursor?.remove();
    return;
  }
  const x = (point[0] / board.width) * canvas.clientWidth;
  const y = (point[1] / board.height) * canvas.clientHeight;
  const moved = cursor ?? newCursor(person);
  moved.style.transform = `translate(${x}px, ${y}px)`;
  // A new cursor is positioned before it is shown. Otherwise it would move in from the corner.
  if (!cursor) byId('cursors').append(moved);
}

function newCursor(person) {
  const cursor = document.createElement('div');
  const name = document.createElement('span');
  cursor.id = `cursor-${person.id}`;
  cursor.className = 'cursor';
  cursor.style.setProperty('--hue', hue(person));
  name.textContent = person.name;
  cursor.append(name);
  return cursor;
}

function showPeople() {
  const list = [...people.values()];
  const items = list.slice(0, 6).map((person) => {
    const item = document.createElement('li');
    item.textContent = person.name
      .split(/\s+/)
      .map((word) => [...word][0])
      .slice(0, 2)
      .join('');
    item.title = person.id === you ? `${person.name} (you)` : person.name;
    item.ariaLabel = item.title;
    item.style.background = hue(person);
    item.classList.toggle('you', person.id === you);
    return item;
  });
  if (list.length > 6) {
    const more = document.createElement('li');
    more.className = 'more';
    more.textContent = `+${list.length - 6}`;
    items.push(more);
  }
  byId('people').replaceChildren(...items);
  for (const cursor of document.querySelectorAll('.cursor')) {
    if (!people.has(cursor.id.slice('cursor-'.length))) cursor.remove();
  }
}

function showSession({ backend, key, fencingToken, lasting, loadedFrom }) {
  byId('key').textContent = key === null ? '' : `· ${key}`;
  document.title = key === null ? 'Pad' : `${key} · Pad`;
  byId('backend').textContent = backend;
  byId('about-key').textContent = key ?? 'none: no other connect reaches this backend';
  byId('fencing').textContent =
    fencingToken === null ? 'none' : `${fencingToken}, higher each time the key goes to a new backend`;
  byId('saved').textContent =
    loadedFrom === null ? 'begun on this backend' : `taken over from the backend with fencing token ${loadedFrom}`;
  byId('afterwards').textContent = lasting
    ? 'When the last of you has left, Berth waits a while and stops the backend with SIGTERM. It saves the drawing first, ' +
      'and the next backend with this key loads it.'
    : 'When the last of you has left, Berth waits a while and stops the backend. The drawing goes with it: nothing that ' +
      'outlives the container is mounted.';
}

function makeTools() {
  inks.forEach((name, i) => addChoice('colours', 'colour', { name, value: i, size: 18, ink: `var(--ink-${i})` }));
  ['Thin', 'Medium', 'Thick'].forEach((name, i) =>
    addChoice('widths', 'width', { name, value: i, size: [4, 8, 14][i] }),
  );
}

function addChoice(group, field, { name, value, size, ink }) {
  const label = document.createElement('label');
  const input = document.createElement('input');
  const dot = document.createElement('span');
  Object.assign(input, { type: 'radio', name: field, value, checked: value === (field === 'width' ? 1 : 0) });
  input.ariaLabel = name;
  label.title = name;
  dot.className = 'dot';
  dot.style.width = dot.style.height = `${size}px`;
  if (ink) dot.style.setProperty('--ink', ink);
  label.append(input, dot);
  byId(group).append(label);
}

function chosen(field) {
  return document.querySelector(`input[name=${field}]:checked`).value;
}

function toggleAbout() {
  const about = byId('about');
  about.hidden = !about.hidden;
  byId('about-button').ariaExpanded = String(!about.hidden);
}

async function copyLink() {
  await navigator.clipboard.writeText(location.href).then(
    () => status('Link copied: everyone who opens it joins this board', 3_000),
    () => status('Copy the link from the address bar'),
  );
}

let statusTimer;
function status(text, clearAfterMs) {
  clearTimeout(statusTimer);
  byId('status').textContent = text;
  if (clearAfterMs) statusTimer = setTimeout(() => (byId('status').textContent = ''), clearAfterMs);
}

/** Dark enough in both themes for white text. */
function hue(person) {
  return `hsl(${person.hue} 60% 36%)`;
}
