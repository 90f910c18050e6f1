"""The MCP server, `threadbook mcp`: a memory's tools for any agent that speaks the protocol.

`desk` is what is answered, `offers` how it is described, `server` the protocol, which alone loads
the SDK. The server reads the memory of the folder it is started in, and of no other. What goes
wrong is an answer that the model can read; a server never dies of a question.
"""
