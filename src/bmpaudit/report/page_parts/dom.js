// The document is built from text nodes and attributes alone: no string is ever read as HTML.
export function byId(id) {
  return document.getElementById(id);
}

export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith('on')) made.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.flat());
  return made;
}

// "99 %" and "10 : 1" stay on one line.
export function keepTogether(text) {
  return String(text).replace(/(?<=[\d,.]) (?=%)| (?=: [\d<])|(?<=[\d] :) (?=\d)/g, '\u00a0');
}

// Text in which ε_R, e_L and the like get their subscript.
export function withSubscripts(text) {
  return keepTogether(text)
    .split(/([εe]_[A-Za-z0-9])(?![A-Za-z0-9])/)
    .map((piece, index) =>
      index % 2
        ? element('span', {}, piece[0] === 'e' ? element('i', {}, 'e') : piece[0], element('sub', {}, piece[2]))
        : piece,
    );
}

export function numberCell(...children) {
  return element('td', {class: 'number'}, ...children);
}

// Small print below a number.
export function small(text) {
  return element('span', {class: 'odds'}, text);
}

export function headings(names) {
  const row = element('tr');
  names.forEach((name, index) =>
    row.append(element('th', {scope: 'col', class: index ? 'number' : null}, ...withSubscripts(name))),
  );
  return element('thead', {}, row);
}

export function fillList(list, items, otherwise) {
  const texts = items && items.length ? items : [otherwise];
  list.replaceChildren(...texts.map((text) => element('li', {}, ...withSubscripts(text))));
}

export function fillOptions(select, options) {
  select.replaceChildren(...options.map(([value, label]) => element('option', {value}, label)));
}

// What the page holds deflated and in base64: its data, and Plotly.
export async function inflate(id) {
  const packed = Uint8Array.from(atob(byId(id).textContent), (c) => c.charCodeAt(0));
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate'))).text();
}
