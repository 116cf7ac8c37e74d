import { describeBus } from '../../test/suites/bus-suite.ts';
import { silentLog } from '../log/log.ts';
import { openInProcessBus } from './in-process.ts';

describeBus('In the process', async () => openInProcessBus({ log: silentLog() }));
