// The form that sends a request: a drawing, an image file, or JSON.
'use strict';

const form = document.getElementById('request');
const at = id => document.getElementById(id);
const MOST_JSON = 20000;  // characters of an example that is written out
const SIDE = 28;

// The height, width and channels of the images that an input takes; null: it takes none.
function imageOf(input) {
  if (!/^(float|bfloat|u?int)/.test(input.dtype)) return null;
  const dims = input.shape.length > 1 ? input.shape.slice(1) : input.shape;
  if (dims.length === 1 && dims[0] === SIDE * SIDE) return {height: SIDE, width: SIDE, channels: 1};
  if (dims.length === 2 && Math.min(...dims) > 3) return {height: dims[0], width: dims[1], channels: 1};
  if (dims.length !== 3) return null;
  const [a, b, c] = dims;
  if ((c === 1 || c === 3) && a > 3 && b > 3) return {height: a, width: b, channels: c};
  if ((a === 1 || a === 3) && b > 3 && c > 3) return {height: b, width: c, channels: a, first: true};
  return null;
}

// Lists of these dims with value(index) in them.
function nested(dims, value) {
  let next = 0;
  const list = axis => axis === dims.length ? value(next++)
    : Array.from({length: dims[axis]}, () => list(axis + 1));
  return list(0);
}

function zeroOf(dtype) {
  return dtype === 'bool' ? false : dtype === 'string' ? 'text' : 0;
}

const dimsOf = input => input.shape.map(dim => dim < 0 ? 1 : dim);

function bodyWith(signature, values) {
  const inputs = {};
  for (const input of signature.inputs) {
    if (input.key in values) inputs[input.key] = values[input.key];
    else if (!input.optional) inputs[input.key] = nested(dimsOf(input), () => zeroOf(input.dtype));
  }
  return {signature_name: signature.name, inputs};
}

// The pixels of a canvas as the input takes them.
function pixels(canvas, input, image) {
  const {data} = canvas.getContext('2d').getImageData(0, 0, image.width, image.height);
  const scale = at('scale').value;
  const number = byte => scale === '255' ? byte : scale === '1' ? byte / 255 : byte / 127.5 - 1;
  const count = image.height * image.width;
  return nested(dimsOf(input), i => {
    const pixel = image.first ? i % count : Math.floor(i / image.channels);
    const channel = image.first ? Math.floor(i / count) : i % image.channels;
    const [r, g, b] = data.subarray(4 * pixel, 4 * pixel + 3);
    return number(image.channels === 3 ? [r, g, b][channel] : 0.299 * r + 0.587 * g + 0.114 * b);
  });
}

function blank(canvas, width, height) {
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext('2d', {willReadFrequently: true});
  context.fillRect(0, 0, width, height);
  context.strokeStyle = '#fff';
  context.lineCap = context.lineJoin = 'round';
  context.lineWidth = 2.2;
  return context;
}

function draws(pad) {
  let pen = null, key = {x: SIDE / 2, y: SIDE / 2}, down = false;
  const line = (from, to) => {
    const context = pad.getContext('2d');
    context.beginPath();
    context.moveTo(from.x, from.y);
    context.lineTo(to.x, to.y);
    context.stroke();
  };
  const place = event => {
    const box = pad.getBoundingClientRect();
    return {x: (event.clientX - box.left) * SIDE / box.width, y: (event.clientY - box.top) * SIDE / box.height};
  };
  pad.addEventListener('pointerdown', event => {
    pad.setPointerCapture(event.pointerId);
    pen = place(event);
    line(pen, pen);
  });
  pad.addEventListener('pointermove', event => {
    if (!pen) return;
    const to = place(event);
    line(pen, to);
    pen = to;
  });
  for (const end of ['pointerup', 'pointercancel']) pad.addEventListener(end, () => { pen = null; });
  const steps = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};
  pad.addEventListener('keydown', event => {
    const step = steps[event.key];
    if (event.key === ' ') down = true;
    if (!step && event.key !== ' ') return;
    event.preventDefault();
    const to = step ? {x: Math.min(SIDE, Math.max(0, key.x + step[0])), y: Math.min(SIDE, Math.max(0, key.y + step[1]))} : key;
    if (down) line(key, to);
    key = to;
  });
  pad.addEventListener('keyup', event => { if (event.key === ' ') down = false; });
}

function element(name, text, ...children) {
  const made = document.createElement(name);
  if (text !== null) made.textContent = text;
  made.append(...children);
  return made;
}

// The places of the five largest numbers of a list.
function best(values) {
  const items = values.map((value, i) => ({value, i})).sort((a, b) => b.value - a.value).slice(0, 5)
    .map(({value, i}) => element('li', null, element('strong', String(i)), `: ${value.toPrecision(4)}`));
  return element('ul', null, ...items);
}

function show(status, text, took) {
  const answer = at('answer');
  answer.replaceChildren(element('p', status === 200 ? `Answered in ${took.toFixed(1)} ms` : `Status ${status}`));
  let outputs = null;
  try {
    outputs = JSON.parse(text.replace(/-?\b(NaN|Infinity)\b/g, 'null')).outputs;
  } catch { /* shown as it came */ }
  if (outputs && (Array.isArray(outputs) || typeof outputs !== 'object')) outputs = {output: outputs};
  for (const [name, value] of Object.entries(outputs || {})) {
    const row = Array.isArray(value) && Array.isArray(value[0]) ? value[0] : value;
    if (Array.isArray(row) && row.length > 1 && row.every(one => typeof one === 'number'))
      answer.append(element('p', `The largest of ${name}:`), best(row));
  }
  const pre = element('pre', text.length > MOST_JSON ? text.slice(0, MOST_JSON) + ' ...' : text);
  pre.tabIndex = 0;
  answer.append(pre);
}

function setUp() {
  const signatures = JSON.parse(form.dataset.signatures);
  let signature = null, image = null, input = null;
  at('signature').append(...signatures.map(one => element('option', one.name)));
  const usual = signatures.findIndex(one => one.name === 'serving_default');
  at('signature').selectedIndex = Math.max(0, usual);

  const choose = () => {
    const way = at('way').value;
    for (const id of ['draw', 'image', 'json']) at(id).hidden = id !== way;
    at('range').hidden = way === 'json';
  };
  const begin = () => {
    signature = signatures[at('signature').selectedIndex];
    const needed = signature.inputs.filter(one => !one.optional);
    input = needed.length === 1 ? needed[0] : null;
    image = input && imageOf(input);
    if (image && Math.min(image.height, image.width) < 1) image = {...image, height: 224, width: 224};
    const pad = Boolean(image) && image.height === SIDE && image.width === SIDE && image.channels === 1;
    for (const option of at('way').options)
      option.disabled = option.value === 'draw' ? !pad : option.value === 'image' && !image;
    at('way').value = pad ? 'draw' : image ? 'image' : 'json';
    if (input && input.dtype.includes('int')) at('scale').value = '255';
    blank(at('pad'), SIDE, SIDE);
    if (image) blank(at('preview'), image.width, image.height);
    const example = JSON.stringify(bodyWith(signature, {}));
    at('body').value = example.length > MOST_JSON ? '' : example;
    choose();
  };
  at('signature').addEventListener('change', begin);
  at('way').addEventListener('change', choose);
  at('clear').addEventListener('click', () => blank(at('pad'), SIDE, SIDE));
  at('file').addEventListener('change', async () => {
    const file = at('file').files[0];
    if (!file) return;
    try {
      const picture = await createImageBitmap(file);
      blank(at('preview'), image.width, image.height).drawImage(picture, 0, 0, image.width, image.height);
    } catch {
      at('answer').replaceChildren(element('p', 'The browser cannot read this file as an image.'));
    }
  });
  form.addEventListener('submit', async event => {
    event.preventDefault();
    const way = at('way').value;
    const body = way === 'json' ? at('body').value
      : JSON.stringify(bodyWith(signature, {[input.key]: pixels(at(way === 'draw' ? 'pad' : 'preview'), input, image)}));
    const start = performance.now();
    try {
      const reply = await fetch(form.dataset.predict, {method: 'POST', body});
      show(reply.status, await reply.text(), performance.now() - start);
    } catch (error) {
      at('answer').replaceChildren(element('p', `No answer: ${error.message}`));
    }
  });
  draws(at('pad'));
  begin();
  form.hidden = false;
}

if (form) setUp();
