// All about the selected node, beside the page or, on a small screen, below it.
import {byId, element, keepTogether, withSubscripts} from './dom.js';
import {
  formatCount,
  formatCounted,
  formatFixed,
  formatInterval,
  formatOdds,
  formatP,
  formatPercent,
  formatSignificant,
  isNumber,
  shorten,
} from './format.js';
import {goToSection, nodeButton} from './navigation.js';
import {inWords, namedInWords, neighbours, nodes, selectNode, state, whenChanged} from './state.js';

const MAX_NEIGHBOURS = 12;

function nodeFacts(position) {
  const at = (key) => nodes[key]?.[position];
  const leak = (side) =>
    isNumber(at(`${side}_median`))
      ? `${formatFixed(at(`${side}_median`))} (${formatInterval(at(`${side}_low`), at(`${side}_high`))})`
      : 'not audited';
  const errors = (wrong, trials) =>
    isNumber(at(wrong)) ? `${formatCount(at(wrong))} of ${formatCount(at(trials))}` : `– of ${formatCount(at(trials))}`;
  const exposure = (side) => {
    const [share, low, high] = ['', '_low', '_high'].map((end) => at(`${side}_exposure${end}`));
    return isNumber(share)
      ? `${formatPercent(share)} (${formatPercent(low)} to ${formatPercent(high)})`
      : 'no such model';
  };
  const facts = [
    ['Rank', formatCount(at('rank'))],
    ['Exposure', exposure('member')],
    ['Exposure as out', exposure('non_member')],
    ['Leaks', at('is_leaking') ? 'proven' : isNumber(at('p_value')) ? 'not proven' : 'not tested'],
    ['p-value', formatP(at('p_value'))],
    ['Accuracy', formatFixed(at('accuracy'))],
    [
      'Prior γ',
      `${formatSignificant(at('prior_prob'))}${at('prior_standard_error') > 0 ? ` ± ${formatSignificant(at('prior_standard_error'), 2)}` : ''}`,
    ],
    ['Class', String(at('class'))],
    ['Degree', formatCount(at('degree'))],
    ['Homophily', formatFixed(at('homophily'))],
    ['Component', String(at('component'))],
    ['Id', String(at('id'))],
    ['Flag', at('flag') || 'none'],
  ];
  const implied = [
    ['False positives', errors('false_positives', 'num_out')],
    ['False negatives', errors('false_negatives', 'num_in')],
    ['e_R', leak('right')],
    ['e_R as odds', formatOdds(at('right_median'))],
    ['Floor of e_R', formatFixed(at('floor_right'))],
    ['e_R above the floor', formatFixed(at('excess_right_median'))],
    ['e_L', leak('left')],
    ['Floor of e_L', formatFixed(at('floor_left'))],
  ];
  return {facts, implied};
}

function listOf(facts) {
  return element(
    'dl',
    {},
    ...facts.flatMap(([term, text]) => [
      element('dt', {}, ...withSubscripts(term)),
      element('dd', {class: 'name'}, keepTogether(text)),
    ]),
  );
}

// A page of a large graph may hold some of a node's neighbours, or none.
function neighboursInWords(numShown, degree) {
  if (!degree) return 'No neighbours';
  if (numShown === degree) return `Neighbours (${formatCount(degree)})`;
  return numShown
    ? `Neighbours (${formatCount(numShown)} of ${formatCount(degree)} on this page)`
    : `${formatCounted(degree, 'neighbour')}, none on this page`;
}

export function show() {
  const panel = byId('node-panel');
  const wide = window.matchMedia('(min-width: 68.001rem)');
  const fit = () => {
    panel.open = wide.matches;
  };
  wide.addEventListener('change', fit);
  fit();

  const update = () => {
    const position = state.selected;
    panel.classList.toggle('nothing', position === null);
    if (position === null) delete panel.dataset.position;
    else panel.dataset.position = position;
    const summary = panel.querySelector('summary');
    if (position === null) {
      summary.textContent = inWords('No node selected');
      byId('node-details').replaceChildren(inWords('Click a node in a chart, in the graph or in the table.'));
      return;
    }
    const share = nodes.member_exposure[position];
    summary.replaceChildren(
      element('span', {class: 'name'}, shorten(nodes.name[position], 80)),
      isNumber(share) ? ` · named ${formatPercent(share)}` : ' · not counted',
    );
    const named = namedInWords(position);
    const sentence = element('p', {class: 'named'}, `${named[0].toUpperCase()}${named.slice(1)}.`);
    const {facts, implied} = nodeFacts(position);
    const near = neighbours[position];
    const list = element(
      'ul',
      {class: 'neighbours'},
      ...near.slice(0, MAX_NEIGHBOURS).map((other) => element('li', {}, nodeButton(other))),
      near.length > MAX_NEIGHBOURS ? element('li', {}, `and ${formatCount(near.length - MAX_NEIGHBOURS)} more`) : '',
    );
    const buttons = element(
      'div',
      {class: 'buttons'},
      element('button', {type: 'button', onclick: () => goToSection('nodes')}, 'Show in table'),
      element('button', {type: 'button', onclick: () => goToSection('graph')}, inWords('Show in graph')),
      element('button', {type: 'button', onclick: () => selectNode(null)}, 'Clear'),
    );
    byId('node-details').replaceChildren(
      sentence,
      listOf(facts),
      element('details', {}, element('summary', {}, 'Errors, and the ε that they imply'), listOf(implied)),
      element('strong', {}, neighboursInWords(near.length, nodes.degree[position])),
      list,
      buttons,
    );
  };
  whenChanged('select', update);
  update();
}
