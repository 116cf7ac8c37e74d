/** Fetches a mongod from MongoDB's server, or from the mirror in the variable MONGOMS_DOWNLOAD_MIRROR. */
import { DownloadError } from 'mongodb-memory-server-core/lib/util/errors.js';
import { getOS } from 'mongodb-memory-server-core/lib/util/getos/index.js';
import { MongoBinaryDownload } from 'mongodb-memory-server-core/lib/util/MongoBinaryDownload.js';

export interface MongodFetch {
  readonly version: string;
  /** Receives the program. */
  readonly folder: string;
  /** Time without a byte after which the download fails. */
  readonly maxSilenceMs: number;
  /** Called with the progress. */
  readonly detail: (words: string) => void;
}

/** Fetches the mongod for this system, compares its archive with the checksum beside it, and returns the path of the program. */
export async function fetchMongod({ version, folder, maxSilenceMs, detail }: MongodFetch): Promise<string> {
  const options = { version, downloadDir: folder, checkMD5: true, os: await getOS() };
  const download = new MongoBinaryDownload(options);
  const httpDownload = download.httpDownload.bind(download);
  download.httpDownload = async (url, request, path, temporary) => {
    // By default, the library does not verify certificates, tries three times with pauses, and waits a minute for a byte.
    const verified = { ...request, rejectUnauthorized: true };
    return await httpDownload(url, verified, path, temporary, 1, 0, maxSilenceMs);
  };
  download.printDownloadProgress = ({ length }) => {
    const progress = download.dlProgress;
    progress.current += length;
    detail(`${Math.floor((100 * progress.current) / progress.length)} %`);
  };
  try {
    return await download.getMongodPath();
  } catch (error) {
    // Its message has several lines, and lacks the code if no address of the server can be reached.
    if (error instanceof DownloadError) throw new Error(`${error.url}: ${error.code}`, { cause: error });
    throw error;
  }
}
