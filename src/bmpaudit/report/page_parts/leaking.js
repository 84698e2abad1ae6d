// Who is proven to leak.
import {byId, element} from './dom.js';
import {formatCount, formatCounted} from './format.js';
import {goToSection, nodeButton} from './navigation.js';
import {byRank, data, inWords, nodes} from './state.js';

const MAX_LISTED = 12;

function showInTable() {
  byId('table-show').value = 'leaking';
  byId('table-show').dispatchEvent(new Event('change'));
  goToSection('nodes');
}

export function show() {
  const test = data.permutation_test;
  if (!test) return;
  const total = formatCounted(test.num_nodes, inWords('node'));
  byId('leaking-count').textContent = `${formatCount(test.num_leaking)} of ${total}.`;
  const listed = byRank.filter((position) => nodes.is_leaking[position]).slice(0, MAX_LISTED);
  const more = test.num_leaking - listed.length;
  const all = `and ${formatCount(more)} more, in the table`;
  byId('leaking-nodes').replaceChildren(
    ...listed.map((position) => element('li', {}, nodeButton(position))),
    ...(more > 0
      ? [element('li', {}, element('button', {type: 'button', class: 'link', onclick: showInTable}, all))]
      : []),
  );
}
