import { endpoints } from '../../contract/endpoints.ts';
import { answer } from '../app.ts';
import { connect } from '../connect.ts';
import { presentConnection } from '../present.ts';
import { ownService } from '../visible.ts';

export const connectEndpoints = [
  answer(endpoints.connect, async (api, { parameters, body, caller, signal }) => {
    ownService(caller, parameters);
    return presentConnection(api, await connect(api, parameters, body, signal));
  }),
  answer(endpoints.connectEnvironment, async (api, { parameters, body, caller, signal }) => {
    ownService(caller, parameters);
    return presentConnection(api, await connect(api, parameters, body, signal));
  }),
];
