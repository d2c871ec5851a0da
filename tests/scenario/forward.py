# SPDX-License-Identifier: Apache-2.0
"""forward.py MS FROM TO [FROM TO...]: carries TCP from HOST:PORT to another, or to a socket's path; an answer takes MS longer."""
import asyncio
import sys

DELAY_S = float(sys.argv[1]) / 1000


async def carry(reader, writer, delay_s):
    try:
        while data := await reader.read(1 << 16):
            await asyncio.sleep(delay_s)
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


def forwarder(target, delay_s):
    async def accept(reader, writer):
        try:
            if target.startswith("/"):
                there = await asyncio.open_unix_connection(target)
            else:
                host, port = target.rsplit(":", 1)
                there = await asyncio.open_connection(host, int(port))
        except OSError:
            writer.close()
            return
        await asyncio.gather(carry(reader, there[1], 0), carry(there[0], writer, delay_s))

    return accept


async def main():
    pairs = list(zip(sys.argv[2::2], sys.argv[3::2]))
    servers = []
    for at, target in pairs:
        host, port = at.rsplit(":", 1)
        # a socket of the database answers at once: only the store is slow
        servers.append(await asyncio.start_server(forwarder(target, 0 if target.startswith("/") else DELAY_S), host, int(port)))
    print("ready", flush=True)
    await asyncio.gather(*[s.serve_forever() for s in servers])


asyncio.run(main())
