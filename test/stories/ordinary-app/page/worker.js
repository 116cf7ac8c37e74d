/** A service worker that lets every request through. */
self.addEventListener('fetch', () => {});
