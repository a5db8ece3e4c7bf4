"""A proxy that delays what passes, and counts how often the client waits."""

import asyncio
import threading
import time


class Proxy(threading.Thread):
    def __init__(self, port, delay):
        super().__init__(daemon=True)
        self.target, self.delay, self.round_trips = port, delay, 0
        self.ready = threading.Event()
        self.start()
        self.ready.wait()

    def run(self):
        asyncio.run(self.serve())

    async def serve(self):
        server = await asyncio.start_server(self.handle, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self.ready.set()
        async with server:
            await server.serve_forever()

    async def handle(self, reader, writer):
        upstream, downstream = await asyncio.open_connection("127.0.0.1", self.target)
        state = {"answered": True}

        async def pump(source, sink, from_client):
            # Delays every chunk by the same time without holding back the ones behind it.
            queue = asyncio.Queue()

            async def deliver():
                while (item := await queue.get()) is not None:
                    due, chunk = item
                    await asyncio.sleep(max(0, due - time.monotonic()))
                    sink.write(chunk)
                    await sink.drain()
                sink.close()

            delivery = asyncio.create_task(deliver())
            try:
                while chunk := await source.read(1 << 16):
                    if from_client and state["answered"]:
                        self.round_trips += 1
                    state["answered"] = not from_client
                    await queue.put((time.monotonic() + self.delay / 2, chunk))
            except ConnectionError:
                pass
            await queue.put(None)
            await asyncio.gather(delivery, return_exceptions=True)

        await asyncio.gather(pump(reader, downstream, True), pump(upstream, writer, False))
