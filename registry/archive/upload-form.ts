/** Reads the body of an upload: a form with one file, or the archive itself. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import type { Options, StorageEngine } from 'multer';
import { z } from 'zod';
import { abortable } from '../../core/async/abortable.ts';
import type { Clock } from '../../core/clock/clock.ts';
import { bodyBytes } from '../../core/http/linger.ts';
import { ApiError } from '../../model/api-error.ts';

/** The field of the form that holds the archive. */
const fieldName = 'archive';

/** Reads an archive to its end. On failure it does not destroy the stream, so that the client can read the error. */
type Reader<T> = (archive: Readable) => Promise<T>;

interface Upload {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly clock: Clock;
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
}

interface Received<T> {
  readonly result: T;
  /** Text fields of the form. They may follow the file. */
  readonly fields: { readonly tag?: string | undefined; readonly image?: string | undefined };
}

/** The content types of an archive that is the body, as curl and other tools send them. Its first bytes show its real type. */
const archiveTypes = [
  'application/x-tar',
  'application/gzip',
  'application/x-gzip',
  'application/zstd',
  'application/octet-stream',
];

/** A tag has at most 128 characters, a name 255 and a tag. */
const maxFieldBytes = 512;

/** How long the parts of a form before and after the file may take, which are a few hundred bytes. The file has a minimum rate. */
const maxFieldsMs = 30_000;

const textFields = z.strictObject({ tag: z.string().optional(), image: z.string().optional() });

/** Reads the body of an upload. Throws `BadRequest`, `UnsupportedMediaType`, and the errors of `read`. */
export async function receiveForm<T>(upload: Upload, read: Reader<T>): Promise<Received<T>> {
  const { request } = upload;
  const type = (request.headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase() ?? '';
  if (type === 'multipart/form-data') return await receiveMultipart(upload, read);
  if (bodyBytes(request) > 0 && !archiveTypes.includes(type)) {
    throw new ApiError(
      'UnsupportedMediaType',
      `Send a form (multipart/form-data) with the field "${fieldName}", or the archive as ${archiveTypes[0]}`,
    );
  }
  return { result: await read(request), fields: {} };
}

async function receiveMultipart<T>(upload: Upload, read: Reader<T>): Promise<Received<T>> {
  const { request, response, clock, signal } = upload;
  // Loaded for the first form: most processes receive none.
  const { default: multer } = await import('multer');
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const limitFields = () =>
    clock.after(maxFieldsMs, () =>
      reject(new ApiError('RequestTimeout', 'The fields of the form took too long to arrive')),
    );
  let limit = limitFields();
  let received: { readonly result: T } | undefined;
  // Multer reads the rest of the body before it reports an error; this promise rejects at once.
  const storage: StorageEngine = {
    _handleFile: (_request, file, callback) => {
      void (async () => {
        try {
          limit[Symbol.dispose]();
          received = { result: await read(file.stream) };
          limit = limitFields();
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
  // Multer uses only the parts of Express's request that Node's request has.
  parse(form as Parameters<typeof parse>[0], response as Parameters<typeof parse>[1], (error?: unknown) => {
    if (error !== undefined && error !== null) reject(asFormError(error));
    else resolve();
  });
  try {
    await abortable(promise, signal);
  } finally {
    limit[Symbol.dispose]();
  }
  if (!received) throw new ApiError('BadRequest', `The form has no file in the field "${fieldName}"`);
  return { ...received, fields: textFields.parse({ ...(form.body as object | undefined) }) };
}

type MulterRequest = IncomingMessage & { body?: unknown };

/** Multer's parser throws plain errors for an invalid form. */
function asFormError(error: unknown): unknown {
  if (!(error instanceof Error) || error.name !== 'Error' || 'code' in error) return error;
  return new ApiError('BadRequest', `The form cannot be read: ${error.message}`, { cause: error });
}
