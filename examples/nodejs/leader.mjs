// A leader in JavaScript: it takes a Lease itself, reads its fencing token from the
// answer, and writes a guarded ConfigMap with it. Any language with a Kubernetes
// client can do this.
//
//     node leader.mjs NAMESPACE LEASE CONFIGMAP
//
// It writes a counter once a second while it leads, and ends when another takes over.
import {randomUUID} from 'node:crypto';
import {hostname} from 'node:os';
import {setTimeout as sleep} from 'node:timers/promises';
import {ApiException, CoordinationV1Api, CoreV1Api, KubeConfig, V1MicroTime} from '@kubernetes/client-node';

const [namespace, name, configMap] = process.argv.slice(2);
if (!configMap) {
  console.error('usage: node leader.mjs NAMESPACE LEASE CONFIGMAP');
  process.exit(2);
}
const identity = `${hostname()}_${randomUUID()}`;
const leaseSeconds = 15, renewDeadline = 10_000, retryPeriod = 2_000;

const config = new KubeConfig();
config.loadFromDefault();
const leases = config.makeApiClient(CoordinationV1Api);
const objects = config.makeApiClient(CoreV1Api);

const reasonOf = ({body}) => (typeof body === 'string' ? JSON.parse(body) : body).reason;
const isCode = (error, code) => error instanceof ApiException && error.code === code;
const now = () => performance.now(); // a clock that nobody sets

// take competes for the Lease until an answer shows us as its holder. A Lease
// counts as abandoned once it has not changed for its own duration while we watched:
// its times are another machine's clock.
async function take() {
  let seen = '', since = now();
  for (;;) {
    const lease = await leases.readNamespacedLease({namespace, name});
    if (lease.metadata.resourceVersion !== seen) {
      seen = lease.metadata.resourceVersion;
      since = now();
    }
    const {holderIdentity, leaseDurationSeconds} = lease.spec;
    if (!holderIdentity || now() - since > (leaseDurationSeconds ?? leaseSeconds) * 1000) {
      const time = new V1MicroTime();
      Object.assign(lease.spec, {
        holderIdentity: identity, leaseDurationSeconds: leaseSeconds,
        acquireTime: time, renewTime: time, leaseTransitions: (lease.spec.leaseTransitions ?? 0) + 1,
      });
      try {
        return await leases.replaceNamespacedLease({namespace, name, body: lease});
      } catch (error) {
        if (!isCode(error, 409)) throw error; // somebody was faster
      }
    }
    await sleep(retryPeriod);
  }
}

// tokenOf is the token that an answer gives us. It counts only if it was handed out
// to us, by a FencedLease that still exists.
function tokenOf(lease) {
  const {annotations = {}, labels = {}} = lease.metadata;
  const ours = labels['fencedlease.io/fenced-by'] && !labels['fencedlease.io/retired'] &&
    annotations['fencedlease.io/token-for'] === identity;
  if (!ours) throw new Error(`Lease ${namespace}/${name} hands out no token: is its FencedLease Ready?`);
  return annotations['fencedlease.io/token'];
}

// renew renews the Lease and returns it as it is then. Others may have changed it,
// the operator for one: that is the end only if we hold it no more.
async function renew(lease) {
  for (;;) {
    const {holderIdentity} = lease.spec;
    if (holderIdentity !== identity) throw new Lost(`the Lease is held by ${holderIdentity || 'nobody'}`);
    lease.spec.renewTime = new V1MicroTime();
    try {
      return await leases.replaceNamespacedLease({namespace, name, body: lease});
    } catch (error) {
      if (!isCode(error, 409)) throw error;
      lease = await leases.readNamespacedLease({namespace, name});
    }
  }
}

class Lost extends Error {}

// write stores a counter. The annotation fencedlease.io/write presents the token
// anew, also where the object has it already.
async function write(token, count) {
  const object = await objects.readNamespacedConfigMap({namespace, name: configMap});
  object.data = {...object.data, count: String(count)};
  object.metadata.annotations = {
    ...object.metadata.annotations,
    'fencedlease.io/token': token, 'fencedlease.io/write': `${token}/${count}`,
  };
  await objects.replaceNamespacedConfigMap({namespace, name: configMap, body: object});
}

let ending = false;
process.on('SIGTERM', () => { ending = true; });

let lease = await take();
let proof = now();
console.log(`leads with token ${tokenOf(lease)}`);
try {
  for (let count = 1; !ending; count++) {
    if (now() - proof >= retryPeriod) {
      const sent = now();
      lease = await renew(lease);
      proof = sent;
    }
    if (now() - proof > renewDeadline) throw new Lost('the Lease could not be renewed in time');
    await write(tokenOf(lease), count); // the token of the newest answer: it may have risen
    console.log(`wrote ${count}`);
    await sleep(1000);
  }
  lease.spec.holderIdentity = '';
  await leases.replaceNamespacedLease({namespace, name, body: lease});
  console.log('released');
} catch (error) {
  if (error instanceof Lost) {
    console.log(`ends: ${error.message}`);
  } else if (isCode(error, 412)) { // a newer term exists: this write did not happen
    console.log(`ends: HTTP 412 ${reasonOf(error)}`);
  } else {
    throw error;
  }
  process.exitCode = 1;
}
