package mcp

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A Message is one JSON-RPC message with its parts as raw bytes. An absent part is nil; a null part is "null". A
// request has Method and ID, a notification only Method, and a response ID and Result or Error.
type Message struct {
	ID, Params, Result, Error json.RawMessage
	Method                    string
	// Ambiguous is the name of a member that two parsers may read differently, because the member is repeated or
	// another member has a similar name. It is empty in a correct message.
	Ambiguous string
}

// IsRequest reports whether the message has a method and an id. At most one of IsRequest, IsNotification and IsResponse
// is true. None is true for a message that is not JSON-RPC.
func (m Message) IsRequest() bool { return m.Method != "" && m.ID != nil }

// IsNotification reports whether the message has a method and no id.
func (m Message) IsNotification() bool { return m.Method != "" && m.ID == nil }

// IsResponse reports whether the message has a result or an error, and no method.
func (m Message) IsResponse() bool { return m.Method == "" && (m.Result != nil || m.Error != nil) }

// decisiveMembers are the members of a JSON-RPC message; each may occur once. ParseMessage uses their indexes.
var decisiveMembers = [...]string{"jsonrpc", "id", "method", "params", "result", "error"}

// ParseMessage parses one message. It returns a *rawjson.SyntaxError if b is not a valid JSON object. An object that is
// not a JSON-RPC message is returned without an error, and "jsonrpc" may be missing. If a member is repeated, the
// message contains its last value, and Ambiguous contains its name. The parts of the message are slices of b whose
// capacity is limited to their length. If "id" is null, ID is nil in a request and "null" in a response.
func ParseMessage(b []byte) (Message, error) {
	var m Message
	var parts [len(decisiveMembers)]json.RawMessage
	end, err := rawjson.ScanObject(b, func(member rawjson.Member) bool {
		i := slices.IndexFunc(decisiveMembers[:], member.HasName)
		if i < 0 {
			if i = slices.IndexFunc(decisiveMembers[:], member.ResemblesName); i >= 0 {
				m.Ambiguous = decisiveMembers[i]
			}
			return true
		}
		if parts[i] != nil {
			m.Ambiguous = decisiveMembers[i]
		}
		parts[i] = member.Value
		return true
	})
	if err == nil {
		err = rawjson.CheckEnd(b, end)
	}
	if err != nil {
		return Message{}, err
	}
	m.ID, m.Params, m.Result, m.Error = parts[1], parts[3], parts[4], parts[5]
	if parts[2] != nil {
		m.Method, _ = rawjson.DecodeString(parts[2])
	}
	if m.Method != "" && string(m.ID) == "null" {
		m.ID = nil
	}
	if string(m.Error) == "null" && m.Result != nil {
		m.Error = nil // some servers write both members
	}
	return m, nil
}

// IsBatch reports whether b begins a JSON array: a batch of messages, which revisions before 2025-06-18 permit.
func IsBatch(b []byte) bool {
	i := rawjson.SkipSpace(b, 0)
	return i < len(b) && b[i] == '['
}

// Append appends the message to dst as one line of JSON, without a newline at the end. Line breaks in the parts of the
// message, which JSON permits as white space, are replaced by spaces.
func (m Message) Append(dst []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0"`...)
	part := func(name string, value json.RawMessage) {
		if value != nil {
			dst = append(dst, name...)
			dst = appendWithoutLineBreaks(dst, value)
		}
	}
	part(`,"id":`, m.ID)
	if m.Method != "" {
		dst = rawjson.AppendQuoted(append(dst, `,"method":`...), m.Method)
	}
	part(`,"params":`, m.Params)
	part(`,"result":`, m.Result)
	part(`,"error":`, m.Error)
	return append(dst, '}')
}

// appendWithoutLineBreaks appends JSON with its line breaks replaced by spaces. All line breaks are between tokens,
// since JSON strings cannot contain raw line breaks.
func appendWithoutLineBreaks(dst []byte, v []byte) []byte {
	at := len(dst)
	dst = append(dst, v...)
	if bytes.IndexByte(v, '\n') < 0 && bytes.IndexByte(v, '\r') < 0 {
		return dst
	}
	for i := at; i < len(dst); i++ {
		if dst[i] == '\n' || dst[i] == '\r' {
			dst[i] = ' '
		}
	}
	return dst
}

// NewErrorObject returns a JSON-RPC error object. data may be nil.
func NewErrorObject(code int, message string, data json.RawMessage) json.RawMessage {
	out := strconv.AppendInt([]byte(`{"code":`), int64(code), 10)
	out = rawjson.AppendQuoted(append(out, `,"message":`...), message)
	if data != nil {
		out = append(append(out, `,"data":`...), data...)
	}
	return append(out, '}')
}

// ErrorCode returns the code of an error object, or 0 if it has none.
func ErrorCode(obj json.RawMessage) int {
	var code int
	_ = json.Unmarshal(rawjson.Get(obj, "code"), &code) // a code that is not a number counts as missing
	return code
}
