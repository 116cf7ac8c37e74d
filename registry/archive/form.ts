/** The body in which an archive comes: a form with one file, or the archive itself. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import multer from 'multer';
import type { Options, StorageEngine } from 'multer';
import { z } from 'zod';
import { ApiError } from '../../model/api-error.ts';
import { hasBody } from '../http/request-body.ts';

/** The field of the form that holds the archive. */
const fieldName = 'archive';

/** Reads an archive to its end, as it comes; when that fails, it does not destroy it, so that the client reads why. */
type Take<T> = (archive: Readable) => Promise<T>;

interface Received<T> {
  readonly taken: T;
  /** Text fields of the form. They may come after the file. */
  readonly fields: { readonly tag?: string | undefined; readonly image?: string | undefined };
}

/** What curl and others send an archive as, when they send it as the body. What it really is, its first bytes tell. */
const archiveTypes = [
  'application/x-tar',
  'application/gzip',
  'application/x-gzip',
  'application/zstd',
  'application/octet-stream',
];

/** A tag has at most 128 characters, a name 255 and a tag. */
const maxFieldBytes = 512;

const textFields = z.strictObject({ tag: z.string().optional(), image: z.string().optional() });

/** Reads the body of an upload. Throws `BadRequest`, `UnsupportedMediaType`, and what `take` throws. */
export async function receiveArchive<T>(
  { request, response }: { readonly request: IncomingMessage; readonly response: ServerResponse },
  take: Take<T>,
): Promise<Received<T>> {
  const type = (request.headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase() ?? '';
  if (type === 'multipart/form-data') return await receiveForm(request, response, take);
  if (hasBody(request) && !archiveTypes.includes(type)) {
    throw new ApiError(
      'UnsupportedMediaType',
      `Send a form (multipart/form-data) with the field "${fieldName}", or the archive as ${archiveTypes[0]}`,
    );
  }
  return { taken: await take(request), fields: {} };
}

async function receiveForm<T>(request: IncomingMessage, response: ServerResponse, take: Take<T>): Promise<Received<T>> {
  const { promise, resolve, reject } = Promise.withResolvers<T | undefined>();
  let taken: { readonly value: T } | undefined;
  // Multer would read the whole rest of the body before it tells of an error: whoever waits here is told at once.
  const storage: StorageEngine = {
    _handleFile: (_request, file, callback) => {
      void (async () => {
        try {
          taken = { value: await take(file.stream) };
          callback(null, {});
        } catch (error) {
          reject(error);
          callback(error);
        }
      })();
    },
    _removeFile: (_request, _file, callback) => callback(null),
  };
  let files = 0;
  const fileFilter: Options['fileFilter'] = (_request, file, callback) => {
    files += 1;
    if (file.fieldname === fieldName && files === 1) return callback(null, true);
    const error = new ApiError('BadRequest', `Send one file, in the field "${fieldName}", not in "${file.fieldname}"`);
    reject(error);
    callback(error);
  };
  const limits = { fields: 2, parts: 4, fieldSize: maxFieldBytes, fieldNameSize: 100 };
  const parse = multer({ storage, fileFilter, limits }).any();
  const form: MulterRequest = request;
  // Multer needs of Express's request no more than Node's.
  parse(form as Parameters<typeof parse>[0], response as Parameters<typeof parse>[1], (error?: unknown) => {
    if (error !== undefined && error !== null) reject(asFormError(error));
    else resolve(taken?.value);
  });
  await promise;
  if (!taken) throw new ApiError('BadRequest', `The form has no file in the field "${fieldName}"`);
  return { taken: taken.value, fields: textFields.parse({ ...(form.body as object | undefined) }) };
}

type MulterRequest = IncomingMessage & { body?: unknown };

/** What the reader of forms says of a form that is none: plain errors, all of them about the body. */
function asFormError(error: unknown): unknown {
  if (!(error instanceof Error) || error.name !== 'Error' || 'code' in error) return error;
  return new ApiError('BadRequest', `The form cannot be read: ${error.message}`, { cause: error });
}
