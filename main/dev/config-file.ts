/** The schema of `berth.config.json`, from which docs/berth.config.schema.json is generated. */
import { z } from 'zod';

const name = z.string().min(1);

/** The content of `berth.config.json`. */
export const devConfigFile = z
  .strictObject({
    $schema: z.string().meta({ description: 'The JSON schema of this file, for editors' }).optional(),
    dockerfile: name.meta({ description: 'The Dockerfile. Default: `Dockerfile` in the context' }).optional(),
    context: name.meta({ description: 'The folder of the build. Default: the folder of this file' }).optional(),
    target: name.meta({ description: 'The stage of the Dockerfile to build. Default: the last one' }).optional(),
    build_args: z.record(name, z.string()).meta({ description: 'Arguments of the build' }).optional(),
    image: name.meta({ description: 'An image to run instead of a Dockerfile' }).optional(),
    port: z.int().min(0).max(65_535).meta({ description: 'The port. 0: a free port. Default: 8080' }).optional(),
    host: name.meta({ description: 'The address to listen on. Default: `127.0.0.1`' }).optional(),
    watch: z.boolean().meta({ description: 'Whether changed files cause a build. Default: true' }).optional(),
  })
  .refine(({ image, dockerfile }) => image === undefined || dockerfile === undefined, {
    path: ['image'],
    message: 'Use either `image` or `dockerfile`',
  })
  .meta({ title: 'berth.config.json', description: 'Settings of `berth dev`' });
