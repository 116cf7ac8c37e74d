# The one image that runs every role of Berth. It works with BuildKit and with the classic builder.
#
#   docker build --tag berth .
#
# Reproducible: the base is pinned (optionally by digest: NODE_IMAGE=node:24.21.0-slim@sha256:…), packages come from
# package-lock.json, and only files that .dockerignore allows are sent. With BuildKit, the image also has the same bytes each time:
#
#   SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) docker buildx build --tag berth \
#     --output type=docker,rewrite-timestamp=true .
ARG NODE_IMAGE=node:24.21.0-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /app
ENV NODE_ENV=production
COPY package.json package-lock.json .npmrc ./
# No package needs an install script. (`npm ci` refuses a lock file that lacks optional packages of other platforms.)
RUN npm install --no-save --omit=dev --ignore-scripts --cache /tmp/npm && rm -r /tmp/npm node_modules/swagger-ui-dist/*.map
COPY . .
# Compiling the sources is the slowest part of a start, so it is done here, drivers included.
RUN NODE_COMPILE_CACHE=/app/.compiled node setup/compile.mjs && NODE_COMPILE_CACHE=/app/.compiled sh bin/berth --help \
 && rm -r .berth \
 && mkdir /data

# No RUN from here on, so the base may lack a shell.
FROM ${NODE_IMAGE}
WORKDIR /app
# For commands such as `docker compose exec registry berth collect`, which need a shell.
ENV PATH=/app/bin:$PATH \
    NODE_ENV=production \
    NODE_COMPILE_CACHE=/app/.compiled \
    MALLOC_ARENA_MAX=2 \
    BERTH_DATA_FOLDER=/data \
    BERTH_LISTEN_HOST=0.0.0.0
COPY --from=build /app /app
COPY --from=build --chown=1000:1000 /data /data
VOLUME /data
# The user `node` of Node's images. Only a worker needs more rights: the group of the Docker socket.
USER 1000:1000
EXPOSE 7100 7101 7102 7104
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
  CMD ["node", "--eval", "require('node:http').get({ port: process.env.BERTH_OPERATIONS_PORT || 7103, path: '/readyz' }, (answer) => process.exit(answer.statusCode === 200 ? 0 : 1)).on('error', () => process.exit(1))"]
# For the small young generation, see setup/run. Settings with passwords can come from a file, which `docker inspect` does not show.
ENTRYPOINT ["node", "--max-semi-space-size=2", "--env-file-if-exists=/run/secrets/berth.env", "main/berth.ts"]
CMD ["serve"]
