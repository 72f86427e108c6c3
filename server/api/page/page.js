// Keeps the sections of a page up to date. The server sends them as the markup it first made.
'use strict';

// Makes `now` like `wanted`. What is the same stays, with the focus and the place that it has.
function morph(now, wanted) {
  for (const name of now.getAttributeNames())
    if (!wanted.hasAttribute(name)) now.removeAttribute(name);
  for (const name of wanted.getAttributeNames())
    if (now.getAttribute(name) !== wanted.getAttribute(name)) now.setAttribute(name, wanted.getAttribute(name));
  const olds = [...now.childNodes], news = [...wanted.childNodes];
  news.forEach((node, i) => {
    const old = olds[i];
    if (!old) now.append(node);
    else if (old.nodeType === Node.TEXT_NODE && node.nodeType === Node.TEXT_NODE) {
      if (old.data !== node.data) old.data = node.data;
    } else if (old.nodeName === node.nodeName) morph(old, node);
    else old.replaceWith(node);
  });
  olds.slice(news.length).forEach(node => node.remove());
}

function update(sections) {
  for (const [id, html] of Object.entries(sections)) {
    const section = document.getElementById(id);
    if (!section || !section.hasAttribute('data-live')) continue;
    const parsed = new DOMParser().parseFromString(html, 'text/html').body;
    const wanted = section.cloneNode(false);
    wanted.append(...parsed.childNodes);
    morph(section, wanted);
  }
}

const address = document.body.dataset.events;
const live = document.getElementById('live');
if (address) {
  const events = new EventSource(address);
  const say = text => { if (live.textContent !== text) live.textContent = text; };
  events.onmessage = event => {
    update(JSON.parse(event.data));
    say('Live');
  };
  events.onerror = () => say(events.readyState === EventSource.CLOSED
    ? 'No updates: the server refuses them' : 'No updates: trying to connect again');
}
