// Links to the sections. They do not use the address, which holds the selected node.
import {byId, element} from './dom.js';

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
