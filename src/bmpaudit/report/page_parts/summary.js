// The answer for the reader in a hurry. The verdict itself stands in the page's HTML; here it gets its subscripts.
import {byId, element, fillList, withSubscripts} from './dom.js';
import {formatCounted, formatPercent} from './format.js';
import {data, inWords, sampleInWords} from './state.js';

function fillText(place, text) {
  place.replaceChildren(...withSubscripts(text));
}

function fillEvery(selector, text) {
  document.querySelectorAll(selector).forEach((place) => {
    place.textContent = text;
  });
}

function showAnswer() {
  const {answer} = data;
  for (const name of ['proven', 'exposure', 'floor', 'estimated']) fillText(byId(`answer-${name}`), answer[name]);
  fillText(byId('answer-guaranteed'), answer.guaranteed ?? '');
  byId('answer-guaranteed-row').hidden = !answer.guaranteed;
  byId('answer-estimated-row').hidden = !answer.estimated;
  byId('answer-warnings').hidden = !answer.warnings.length;
  byId('answer-warnings').replaceChildren(
    ...answer.warnings.map((warning) => element('li', {}, ...withSubscripts(`Beware: ${warning}`))),
  );
  byId('proven-odds').hidden = !data.is_leakage_found;
  byId('answer-attack').textContent = data.releases[0]?.exposed_by ?? '';
  byId('answer-models').textContent = formatCounted(data.releases[0]?.exposure.num_models, 'shadow model');
}

export function show() {
  const {graph} = data;
  const parts = [
    graph.name,
    formatCounted(graph.num_nodes, inWords('node')),
    formatCounted(graph.num_edges, 'edge'),
    formatCounted(graph.num_features, 'feature'),
    formatCounted(graph.num_classes, 'class', 'classes'),
    `bmpaudit ${data.bmpaudit}`,
    String(data.created).replace('T', ' ').replace('Z', ' UTC'),
  ];
  byId('subtitle').textContent = parts.join(' · ');
  fillText(document.querySelector('.verdict'), data.answer.verdict);
  showAnswer();
  fillList(byId('next'), data.next, 'Nothing in particular.');
  fillList(byId('cautions'), data.cautions, 'Nothing was flagged.');
  fillList(byId('is-not'), data.is_not, 'See the documentation.');
  fillEvery('.level', formatPercent(data.leakage_level));
  fillEvery('.exposure-level', formatPercent(data.exposure_level));
  fillEvery('.sampled', sampleInWords());
  fillEvery('.at-risk', formatPercent(data.releases[0]?.exposure.at_risk));
  fillEvery('.proof-level', formatPercent(data.proof_level));
  fillEvery('.leaking-level', formatPercent(data.leaking_level, 1));
}
