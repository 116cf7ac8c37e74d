/** Starts Swagger UI on the page, in the colours that the browser prefers. */
const dark = globalThis.matchMedia('(prefers-color-scheme: dark)');
const applyColours = () => globalThis.document.documentElement.classList.toggle('dark-mode', dark.matches);
applyColours();
dark.addEventListener('change', applyColours);

globalThis.SwaggerUIBundle({
  url: '/openapi.json',
  domNode: globalThis.document.querySelector('#reference'),
  deepLinking: true,
  // Swagger UI would send the document to a validator of its maker.
  validatorUrl: null,
  defaultModelsExpandDepth: 0,
  docExpansion: 'list',
});
