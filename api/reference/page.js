/** Starts Swagger UI on the page. */
globalThis.SwaggerUIBundle({
  url: '/openapi.json',
  domNode: globalThis.document.querySelector('#reference'),
  deepLinking: true,
  // Swagger UI would send the document to a validator of its maker.
  validatorUrl: null,
  defaultModelsExpandDepth: 0,
  docExpansion: 'list',
});
