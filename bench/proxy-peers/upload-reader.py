"""A backend that reads uploads and answers each when it is complete. It prints its port.

It uses a fraction of the CPU time of the proxies: it reads up to 1 MiB at a time, always into the same memory.
"""

import asyncio

memory = memoryview(bytearray(1024 * 1024))
answer = b'HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nHello World\n'


class Connection(asyncio.BufferedProtocol):
    def connection_made(self, transport):
        self.transport = transport
        self.head = b''
        self.missing = None

    def get_buffer(self, size_hint):
        return memory

    def buffer_updated(self, size):
        if self.missing is None:
            self.head += bytes(memory[:size])
            head, end, body = self.head.partition(b'\r\n\r\n')
            if not end:
                return
            _, _, length = head.lower().partition(b'content-length:')
            self.missing = int(length.split(b'\r\n')[0])
            self.head = b''
            size = len(body)
        self.missing -= size
        if self.missing == 0:
            self.missing = None
            self.transport.write(answer)


async def main():
    server = await asyncio.get_running_loop().create_server(Connection, '127.0.0.1', 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
