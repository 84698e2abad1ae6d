// Links to the sections, which do not use the address, as it holds the selected node; and to nodes.
import {byId, element} from './dom.js';
import {shorten} from './format.js';
import {nodes, selectNode} from './state.js';

export function goToSection(id) {
  const folded = byId(id).closest('details');
  if (folded) folded.open = true;
  byId(id).scrollIntoView();
  byId(id).focus({preventScroll: true});
}

export function showContents() {
  const sections = [...document.querySelectorAll('section[data-nav]')].filter((section) => !section.hidden);
  byId('contents').replaceChildren(
    ...sections.map((section) => element('a', {href: `#${section.id}`}, section.dataset.nav)),
  );
  document.querySelectorAll('nav a, a.skip').forEach((link) =>
    link.addEventListener('click', (event) => {
      event.preventDefault();
      goToSection(link.getAttribute('href').slice(1));
    }),
  );
}

// A button that looks like a link and selects a node.
export function nodeButton(position) {
  return element(
    'button',
    {type: 'button', class: 'link name', onclick: () => selectNode(position)},
    shorten(nodes.name[position]),
  );
}
