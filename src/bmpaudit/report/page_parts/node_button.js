// A button that looks like a link and selects a node.
import {element} from './dom.js';
import {shorten} from './format.js';
import {nodes, selectNode} from './state.js';

export function nodeButton(position) {
  return element(
    'button',
    {type: 'button', class: 'link name', onclick: () => selectNode(position)},
    shorten(nodes.name[position]),
  );
}
