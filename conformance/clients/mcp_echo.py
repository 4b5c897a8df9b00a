"""An MCP server over stdin and stdout with one tool, which says a text again.

Its only argument is a word for the tool's description.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def answer(method: str, params: dict[str, Any], word: str) -> dict[str, Any]:
    """The result of a request."""
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "echo", "version": "1"},
        }
    if method == "tools/list":
        schema = {
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
        }
        tool = {"name": "echo", "description": f"Says a text again: {word}.", "inputSchema": schema}
        return {"tools": [tool]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": f"echo: {params['arguments']['text']}"}]}
    return {}


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:  # else a notification
            result = answer(message["method"], message.get("params", {}), sys.argv[1])
            reply = {"jsonrpc": "2.0", "id": message["id"], "result": result}
            print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
