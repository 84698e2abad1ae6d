// All about the selected node, beside the page or, on a small screen, below it.
import {byId, element, withSubscripts} from './dom.js';
import {formatCount, formatFixed, formatInterval, formatOdds, formatSignificant, isNumber, shorten} from './format.js';
import {goToSection} from './navigation.js';
import {nodeButton} from './node_button.js';
import {isAudited, neighbours, nodes, selectNode, state, whenChanged} from './state.js';

const MAX_NEIGHBOURS = 12;

function nodeFacts(position) {
  const at = (key) => nodes[key]?.[position];
  const leak = (side) =>
    isNumber(at(`${side}_median`))
      ? `${formatFixed(at(`${side}_median`))} (${formatInterval(at(`${side}_low`), at(`${side}_high`))})`
      : 'not audited';
  const errors = (wrong, trials) =>
    isNumber(at(wrong)) ? `${formatCount(at(wrong))} of ${formatCount(at(trials))}` : `– of ${formatCount(at(trials))}`;
  return [
    ['Id', String(at('id'))],
    ['Class', String(at('class'))],
    ['Degree', formatCount(at('degree'))],
    ['Homophily', formatFixed(at('homophily'))],
    ['Component', String(at('component'))],
    [
      'Prior γ',
      `${formatSignificant(at('prior_prob'))}${at('prior_standard_error') > 0 ? ` ± ${formatSignificant(at('prior_standard_error'), 2)}` : ''}`,
    ],
    ['e_R', leak('right')],
    ['e_R as odds', formatOdds(at('right_median'))],
    ['Floor of e_R', formatFixed(at('floor_right'))],
    ['e_R above the floor', formatFixed(at('excess_right_median'))],
    ['e_L', leak('left')],
    ['Floor of e_L', formatFixed(at('floor_left'))],
    ['False positives', errors('false_positives', 'num_out')],
    ['False negatives', errors('false_negatives', 'num_in')],
    ['Flag', at('flag') || 'none'],
  ];
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
      summary.textContent = 'No node selected';
      byId('node-details').replaceChildren('Click a node in a chart, in the graph or in the table.');
      return;
    }
    const value = isAudited(position)
      ? [' · ', ...withSubscripts(`e_R ${formatFixed(nodes.right_median[position])}`)]
      : [' · not audited'];
    summary.replaceChildren(element('span', {class: 'name'}, shorten(nodes.name[position], 80)), ...value);
    const facts = element(
      'dl',
      {},
      ...nodeFacts(position).flatMap(([term, text]) => [
        element('dt', {}, ...withSubscripts(term)),
        element('dd', {class: 'name'}, text),
      ]),
    );
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
      element('button', {type: 'button', onclick: () => goToSection('graph')}, 'Show in graph'),
      element('button', {type: 'button', onclick: () => selectNode(null)}, 'Clear'),
    );
    byId('node-details').replaceChildren(
      facts,
      element('strong', {}, near.length ? `Neighbours (${formatCount(near.length)})` : 'No neighbours on this page'),
      list,
      buttons,
    );
  };
  whenChanged('select', update);
  update();
}
