import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { maxServices, ServiceMetrics } from './service-metrics.ts';

const traffic = { status: 200, sentBytes: 100, receivedBytes: 10 };

test('requests, latency and bytes by service and class of status', async () => {
  const registry = new Registry();
  using metrics = new ServiceMetrics(registry);
  metrics.observe('acme/draw', traffic, 20);
  metrics.observe('acme/draw', { ...traffic, status: 502 }, 3_000);
  metrics.observe('acme/chat', { ...traffic, status: 101 }, 3_600_000);
  const text = await registry.metrics();
  expect(text).toContain('berth_proxy_request_seconds_bucket{le="0.025",service="acme/draw",code_class="2xx"} 1');
  expect(text).toContain('berth_proxy_request_seconds_count{service="acme/draw",code_class="5xx"} 1');
  expect(text).toContain('berth_proxy_request_seconds_sum{service="acme/draw",code_class="5xx"} 3');
  const buckets = text.match(/(?<=_bucket\{le=")[^"]+(?=",service="acme\/draw",code_class="5xx"\} 1)/g);
  expect(buckets).toEqual(['10', '60', '+Inf']);
  expect(text).toContain('berth_proxy_sent_bytes_total{service="acme/draw"} 200');
  expect(text).toContain('berth_proxy_received_bytes_total{service="acme/chat"} 10');
  // An upgraded connection has bytes, but no latency.
  expect(text).not.toMatch(/request_seconds.*acme\/chat/);
});

test('services beyond the limit share a label, also after many requests', async () => {
  const registry = new Registry();
  {
    using metrics = new ServiceMetrics(registry);
    for (let round = 0; round < 2; round += 1) {
      for (let i = 0; i < maxServices + 50; i += 1) metrics.observe(`acme/s${i}`, traffic, 20);
    }
    const text = await registry.metrics();
    expect(new Set(text.match(/service="[^"]+"/g)).size).toBe(maxServices + 1);
    expect(text).toContain('berth_proxy_request_seconds_count{service="acme/s0",code_class="2xx"} 2');
    expect(text).toContain('berth_proxy_request_seconds_count{service="other",code_class="2xx"} 100');
  }
  expect(await registry.metrics()).not.toContain('berth_proxy');
});
