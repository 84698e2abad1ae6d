// What the reader has chosen, and who wants to know when it changes.
import {byId} from './dom.js';
import {isNumber} from './format.js';

export const data = JSON.parse(byId('data').textContent);
export const nodes = data.nodes;
export const numShown = nodes.id.length;
export const state = {selected: null, threshold: 0, kept: []};
const listeners = {select: [], threshold: [], kept: []};

export function whenChanged(what, listener) {
  listeners[what].push(listener);
}

export function announce(what) {
  listeners[what].forEach((listener) => listener());
}

export function isAudited(position) {
  return isNumber(nodes.right_low[position]) && isNumber(nodes.right_median[position]);
}

export function isFlagged(position) {
  return Boolean(nodes.flag[position]);
}

export function isAboveThreshold(position) {
  return isNumber(nodes.right_low[position]) && nodes.right_low[position] > state.threshold;
}

export const positions = Array.from({length: numShown}, (_, position) => position);
export const audited = positions.filter(isAudited);
export const neighbours = positions.map(() => []);
(data.edges?.source ?? []).forEach((source, index) => {
  const target = data.edges.target[index];
  neighbours[source].push(target);
  if (target !== source) neighbours[target].push(source);
});

export function selectNode(position) {
  if (position === state.selected) return;
  state.selected = position;
  const place = position === null ? '#' : `#node=${encodeURIComponent(String(nodes.id[position]))}`;
  history.replaceState(null, '', place);
  announce('select');
}

export function selectFromAddress() {
  const wanted = /^#node=(.*)$/.exec(location.hash);
  if (!wanted) return false;
  let id = null;
  try {
    id = decodeURIComponent(wanted[1]);
  } catch {
    return false; // a percent sign that encodes nothing
  }
  const position = positions.find((candidate) => String(nodes.id[candidate]) === id);
  if (position === undefined) return false;
  selectNode(position);
  return true;
}

export function setThreshold(value) {
  state.threshold = value;
  announce('threshold');
}

export function toggleKept(position) {
  const place = state.kept.indexOf(position);
  if (place >= 0) state.kept.splice(place, 1);
  else state.kept.push(position);
  announce('kept');
}

// Without a wish of the reader: the node that leaks most surely, and no artefact of constant decisions if possible.
export function mostLeaking() {
  const sound = audited.filter((position) => !isFlagged(position));
  const among = sound.length ? sound : audited;
  return among.reduce(
    (best, position) => (best === null || nodes.right_low[position] > nodes.right_low[best] ? position : best),
    null,
  );
}

export function variantLabel(id) {
  return data.variants.find((variant) => variant.id === id)?.label ?? id;
}
