import { words } from './words.js';

document.querySelector('h1').textContent = words;
document.querySelector('p').textContent = 'The page runs';

import.meta.hot.accept('./words.js', (changed) => {
  document.querySelector('h1').textContent = changed.words;
});
