package mcp

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A Message is one JSON-RPC message, its parts as they stand in the bytes. A part that is absent is nil; a part that is
// null is "null". A request has Method and ID, a notification Method alone, a response ID and Result or Error.
type Message struct {
	ID, Params, Result, Error json.RawMessage
	Method                    string
	// Ambiguous is the name of a member that decides what the message means and that two parsers may read differently:
	// it is repeated, or another member's name resembles it. It is empty in a sound message.
	Ambiguous string
}

// IsRequest, IsNotification and IsResponse say what the message is. At most one is true; none is for a message that is
// not JSON-RPC.
func (m Message) IsRequest() bool { return m.Method != "" && m.ID != nil }

// IsNotification reports whether the message has a method and no id.
func (m Message) IsNotification() bool { return m.Method != "" && m.ID == nil }

// IsResponse reports whether the message has a result or an error.
func (m Message) IsResponse() bool { return m.Method == "" && (m.Result != nil || m.Error != nil) }

// decisiveMembers are the members of a JSON-RPC message; each may be there once. ParseMessage knows their order.
var decisiveMembers = [...]string{"jsonrpc", "id", "method", "params", "result", "error"}

// ParseMessage reads one message. The error is a *rawjson.SyntaxError for bytes that are not JSON object as Valid has
// it; an object that is not JSON-RPC message is returned as it is, and a missing "jsonrpc" is not held against anyone.
// Of a repeated member the last counts, and Ambiguous names it. The message's parts are parts of b, without room to
// append. An "id" of null in a request counts as absent; in a response it stays.
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
		m.Error = nil // seen from servers that write both members
	}
	return m, nil
}

// IsBatch reports whether b is a JSON array: a batch of messages, which revisions before 2025-06-18 allow.
func IsBatch(b []byte) bool {
	i := rawjson.SkipSpace(b, 0)
	return i < len(b) && b[i] == '['
}

// Append writes the message as one line of JSON, without the newline. Line breaks inside its parts, which JSON allows
// as white space and a line framing does not, are replaced by spaces.
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

// appendWithoutLineBreaks appends JSON, with the line breaks between its tokens as spaces. A raw line break cannot be
// in a string.
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

// NewErrorObject makes a JSON-RPC error object. Data may be nil.
func NewErrorObject(code int, message string, data json.RawMessage) json.RawMessage {
	out := strconv.AppendInt([]byte(`{"code":`), int64(code), 10)
	out = rawjson.AppendQuoted(append(out, `,"message":`...), message)
	if data != nil {
		out = append(append(out, `,"data":`...), data...)
	}
	return append(out, '}')
}

// ErrorCode reads the code of an error object; 0 where there is none.
func ErrorCode(obj json.RawMessage) int {
	var code int
	_ = json.Unmarshal(rawjson.Get(obj, "code"), &code) // a code that is not a number counts as missing
	return code
}
