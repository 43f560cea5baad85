package agent

import "github.com/drawbridge-mcp/drawbridge"

const (
	// bytesPerToken is the usual number of bytes of a token.
	bytesPerToken = 4
	// imageSize is what an image counts as, in bytes: about 1,600 tokens.
	imageSize = 1600 * bytesPerToken
	// messageOverhead is what a message costs besides its text, in bytes.
	messageOverhead = 16
)

// A measurement is the number of tokens of an earlier request and its answer, as the provider counted them.
type measurement struct {
	tokens int64
	// size is the size of that request and answer as this package counts it.
	size int
}

// estimateTokens returns the number of tokens of a request of the given size in bytes. What the provider has counted is
// taken from the last measurement; only what was added since is estimated.
func estimateTokens(size int, last measurement) int64 {
	if last.tokens > 0 && size >= last.size {
		return last.tokens + int64(size-last.size+bytesPerToken-1)/bytesPerToken
	}
	return int64(size+bytesPerToken-1) / bytesPerToken
}

// messageSize returns the size of a message in bytes.
func messageSize(m drawbridge.Message) int {
	size := messageOverhead
	for _, p := range m.Parts {
		size += len(p.Text)
		if p.Image != nil {
			size += imageSize
		}
		if t := p.Thinking; t != nil {
			size += len(t.Text) + len(t.Provider)
		}
		if c := p.ToolCall; c != nil {
			size += messageOverhead + len(c.Name) + len(c.Arguments) + len(c.Provider)
		}
		if r := p.ToolResult; r != nil {
			size += messageOverhead + len(r.Text) + imageSize*len(r.Images)
		}
	}
	return size
}

// toolsSize returns the size of tool definitions in bytes.
func toolsSize(tools []drawbridge.ToolDefinition) int {
	size := 0
	for _, t := range tools {
		if !t.Deferred {
			size += messageOverhead + len(t.Name) + len(t.Description) + len(t.InputSchema)
		}
	}
	return size
}
