// What the reader has chosen, and who wants to know when it changes.
import {inflate} from './dom.js';
import {formatCount, formatCounted, isNumber} from './format.js';

export const data = JSON.parse(
  await inflate('data').catch((failure) => {
    document.documentElement.dataset.state = 'failed';
    throw failure;
  }),
);
export const nodes = data.nodes;
// Every access to every release, the most first, by the release's name and what the access is, if there are more.
export const rungs = data.releases.flatMap(({lesser, ...release}) => {
  const names = Object.keys(lesser);
  const rung = (access, part) => ({
    ...release,
    ...part,
    name: names.length ? `${release.name}, ${access}` : release.name,
  });
  return [rung(release.access, {}), ...names.reverse().map((access) => rung(access, lesser[access]))];
});
export const numShown = nodes.id.length;
const replaced = Object.keys(data.words);
const REPLACED = new RegExp(`\\b(${replaced.join('|')})\\b`, 'g');

// A text of the page in the words that fit the data: about nodes, or about the rows of a table.
export function inWords(text) {
  return replaced.length ? text.replace(REPLACED, (word) => data.words[word]) : text;
}

// Shares of the models that a node was in, or not in, which name it; null without such a model.
for (const side of ['member', 'non_member']) {
  nodes[`${side}_exposure`] = nodes[`${side}_named`].map((named, position) =>
    nodes[`${side}_models`][position] > 0 ? named / nodes[`${side}_models`][position] : null,
  );
}
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

export function isCounted(position) {
  return isNumber(nodes.member_exposure[position]);
}

export function isFlagged(position) {
  return Boolean(nodes.flag[position]);
}

export function isAboveThreshold(position) {
  return isCounted(position) && nodes.member_exposure_low[position] > state.threshold;
}

export const positions = Array.from({length: numShown}, (_, position) => position);
export const audited = positions.filter(isAudited);
export const byRank = [...positions].sort((one, other) => nodes.rank[one] - nodes.rank[other]);
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

// "named in 37 of the 250 models it was in".
export function namedInWords(position) {
  const [named, models] = [nodes.member_named[position], nodes.member_models[position]];
  if (!(models > 0)) return 'in no model that was attacked';
  return `named in ${formatCount(named)} of the ${formatCounted(models, 'model')} it was in`;
}

// What a page of a large graph leaves out; empty if it holds every node.
export function sampleInWords() {
  if (numShown === data.graph.num_nodes) return '';
  const others = formatCounted(numShown - data.num_most_exposed, 'other');
  const all = inWords(`the graph’s ${formatCounted(data.graph.num_nodes, 'node')}`);
  return `Shown here are ${formatCount(numShown)} of ${all}: the ${formatCount(data.num_most_exposed)} most at risk, and ${others} taken evenly from the rest.`;
}

export function variantLabel(id) {
  return data.variants.find((variant) => variant.id === id)?.label ?? id;
}
