// What the page holds deflated and in base64: its data, and Plotly.
import {byId} from './dom.js';

export async function inflate(id) {
  const packed = Uint8Array.from(atob(byId(id).textContent), (c) => c.charCodeAt(0));
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate'))).text();
}
