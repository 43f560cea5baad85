package cards

import (
	"bufio"
	"bytes"
	"context"
	_ "embed" // the description
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

//go:embed read.md
var readText string

// The limits of the card read.
const (
	defaultReadLines = 2000
	maxReadLines     = 50_000
	maxReadBytes     = 64 << 10 // the maximum size of a result's text
	maxLineBytes     = 2000     // a longer line is cut
	maxImageBytes    = 5 << 20
	maxNotebookBytes = 16 << 20
	binaryPrefix     = 4 << 10 // a NUL in the first bytes makes a file binary
)

// mcpScheme is the beginning of the URI with which the card read addresses a resource of a mounted MCP server:
// mcp://<server>/<the resource's own URI>.
const mcpScheme = "mcp://"

// ScopeFSRead is the scope that a caller needs for the cards that read files. ScopeFSWrite is the scope for the cards
// that write files.
const (
	ScopeFSRead  drawbridge.Scope = "fs:read"
	ScopeFSWrite drawbridge.Scope = "fs:write"
)

// A ResourceReader reads a resource of a mounted server for the caller of call, and returns the result of
// resources/read.
type ResourceReader func(ctx context.Context, call drawbridge.Call, server drawbridge.ServerID,
	uri string) (drawbridge.Result, error)

type readInput struct {
	Path   string `json:"path" jsonschema:"The file; or mcp://<server>/<uri> for a resource of a mounted server."`
	Offset int    `json:"offset,omitempty" jsonschema:"The first line, counted from 1."`
	Limit  int    `json:"limit,omitempty" jsonschema:"How many lines; 2000 if absent."`
}

type readOutput struct {
	Path string `json:"path"`
	// Kind is "text", "image", "notebook", "binary" or "resource".
	Kind string `json:"kind"`
	// First and Last are the numbers of the first and the last returned line. Lines is the number of lines of the file.
	// For a notebook, they count cells.
	First int   `json:"first,omitempty"`
	Last  int   `json:"last,omitempty"`
	Lines int   `json:"lines,omitempty"`
	Size  int64 `json:"size"`
	// Encoding is the name of the encoding; it is empty for UTF-8 without a byte order mark.
	Encoding string `json:"encoding,omitempty"`
	// Cut reports whether lines were omitted because the result would be too large.
	Cut bool `json:"cut,omitempty"`
}

// newReadCard returns the card that reads files.
func newReadCard(c deck.Context) (drawbridge.Card, error) {
	b, err := newFileBackend(c)
	if err != nil {
		return nil, err
	}
	resources, err := deck.Handle[ResourceReader](c, ResourceReaderKey)
	if err != nil {
		return nil, err
	}
	return newShipped(Description[readInput]{
		Name: "read", Title: "Read file", Text: readText, Scopes: []drawbridge.Scope{ScopeFSRead}, AcceptsText: true, TextForScripts: true,
		Examples: []readInput{{Path: "README.md"}, {Path: "main.go", Offset: 100, Limit: 50}},
	}, func(ctx context.Context, call drawbridge.Call, in readInput) (Answer[readOutput], error) {
		if in.Offset < 0 || in.Limit < 0 {
			return Answer[readOutput]{}, ToolError("offset and limit must be 1 or more.")
		}
		if rest, ok := strings.CutPrefix(in.Path, mcpScheme); ok {
			return readResource(ctx, resources, call, rest)
		}
		path, err := resolvePath(c, call.Caller, in.Path)
		if err != nil {
			return Answer[readOutput]{}, err
		}
		return b.read(ctx, call.Caller, path, in)
	}), nil
}

// read reads a file according to its content: as text, image or notebook. For any other file, it returns only the size
// and the media type.
func (b fileBackend) read(ctx context.Context, caller drawbridge.Caller, path string, in readInput) (answer Answer[readOutput], err error) {
	f, err := b.files.Open(path)
	if err != nil {
		return answer, fileError("read", path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return answer, fileError("read", path, err)
	}
	if info.IsDir() {
		return answer, ToolError(path + " is a directory. List it with ls.")
	}
	head := make([]byte, binaryPrefix)
	n, readErr := io.ReadFull(f, head)
	if readErr != nil && !errors.Is(readErr, io.EOF) && !errors.Is(readErr, io.ErrUnexpectedEOF) {
		return answer, fileError("read", path, readErr)
	}
	head = head[:n]
	rest := io.MultiReader(bytes.NewReader(head), f)
	out := readOutput{Path: relativePath(b.context, caller, path), Size: info.Size()}
	kind := http.DetectContentType(head)
	switch name, decoder := detectEncoding(head); {
	case strings.HasPrefix(kind, "image/"):
		answer, err = readImage(rest, kind, out)
	case strings.HasSuffix(path, ".ipynb") && len(head) > 0 && head[0] == '{' && info.Size() <= maxNotebookBytes:
		answer, err = readNotebook(rest, out, in)
	case decoder == nil && bytes.IndexByte(head, 0) >= 0:
		out.Kind = "binary"
		answer = Answer[readOutput]{Value: out, Text: fmt.Sprintf("%s is a binary file: %d bytes, %s.", out.Path, out.Size,
			kind)}
	default:
		out.Encoding = name
		if decoder != nil {
			rest = transform.NewReader(rest, decoder)
		}
		answer, err = readLines(rest, out, in)
	}
	if err != nil {
		return answer, err
	}
	b.noteRead(ctx, caller, path, info)
	return answer, nil
}

// detectEncoding returns the encoding of a text that begins with head. decoder is nil for UTF-8, and for data that is
// not text.
func detectEncoding(head []byte) (name string, decoder *encoding.Decoder) {
	switch {
	case bytes.HasPrefix(head, []byte{0xEF, 0xBB, 0xBF}):
		return "UTF-8 with BOM", unicode.UTF8BOM.NewDecoder()
	case bytes.HasPrefix(head, []byte{0xFF, 0xFE}):
		return "UTF-16LE", unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewDecoder()
	case bytes.HasPrefix(head, []byte{0xFE, 0xFF}):
		return "UTF-16BE", unicode.UTF16(unicode.BigEndian, unicode.UseBOM).NewDecoder()
	case bytes.IndexByte(head, 0) >= 0 || validUTF8Prefix(head):
		return "", nil
	}
	return "Windows-1252", charmap.Windows1252.NewDecoder()
}

// validUTF8Prefix reports whether b is the beginning of a UTF-8 text. The last character may be incomplete.
func validUTF8Prefix(b []byte) bool {
	for cut := range min(utf8.UTFMax, len(b)+1) {
		if part := b[:len(b)-cut]; utf8.Valid(part) {
			return cut == 0 || !utf8.FullRune(b[len(b)-cut:])
		}
	}
	return false
}

// readLines returns the requested lines of a text with their numbers.
func readLines(r io.Reader, out readOutput, in readInput) (Answer[readOutput], error) {
	first, limit := max(in.Offset, 1), in.Limit
	if limit == 0 {
		limit = defaultReadLines
	}
	w := lineWindow{reader: bufio.NewReaderSize(r, 1<<20), first: first, limit: min(limit, maxReadLines)}
	if err := w.read(); err != nil {
		return Answer[readOutput]{}, fileError("read", out.Path, err)
	}
	out.Kind, out.Lines, out.Cut = "text", w.total, w.cut
	if w.shown > 0 {
		out.First, out.Last = first, first+w.shown-1
	}
	text := w.text.String()
	switch {
	case out.Lines == 0:
		text = out.Path + " is empty."
	case w.shown == 0:
		return Answer[readOutput]{}, ToolError(fmt.Sprintf("%s has %d lines; line %d does not exist.", out.Path, out.Lines,
			first))
	case out.First > 1 || out.Last < out.Lines:
		text = fmt.Sprintf("Showing lines %d–%d of %d\n", out.First, out.Last, out.Lines) + text
	}
	if out.Encoding != "" {
		text = fmt.Sprintf("(%s)\n", out.Encoding) + text
	}
	return Answer[readOutput]{Text: text, Value: out, Plain: new(w.plain.String())}, nil
}

// A lineWindow collects at most limit lines of a text, starting at line first, and counts all lines.
type lineWindow struct {
	reader       *bufio.Reader
	first, limit int
	text, plain  strings.Builder // with the numbers of lines, and without
	shown, total int
	cut          bool
}

// read reads to the end of the text.
func (w *lineWindow) read() error {
	var buffer []byte
	for {
		inside := w.total+1 >= w.first && w.shown < w.limit && !w.cut
		line, size, err := w.nextLine(buffer[:0], inside)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if size > 0 {
			w.total++
			if inside {
				w.addLine(line, size)
			}
		}
		if err != nil {
			return nil
		}
		buffer = line
	}
}

// nextLine reads a line and returns its size. If keep is true, it appends the beginning of the line to buffer.
func (w *lineWindow) nextLine(buffer []byte, keep bool) (line []byte, size int, err error) {
	for {
		part, err := w.reader.ReadSlice('\n')
		size += len(part)
		if keep {
			buffer = append(buffer, part[:min(len(part), max(0, maxLineBytes+utf8.UTFMax-len(buffer)))]...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return buffer, size, err
		}
	}
}

// addLine appends a line with its number to the text. size is the size of the whole line. If the text then has
// maxReadBytes or more, addLine sets cut, and no more lines are added.
func (w *lineWindow) addLine(line []byte, size int) {
	text := strings.ToValidUTF8(strings.TrimRight(string(line), "\r\n"), "\uFFFD")
	if size > maxLineBytes+len("\r\n") {
		text = safetext.Truncate(text, maxLineBytes, safetext.Bytes, "") + fmt.Sprintf(" [line cut: %d bytes]", size)
	}
	fmt.Fprintf(&w.text, "%6d\t%s\n", w.total, text)
	w.plain.WriteString(text + "\n")
	w.shown++
	w.cut = w.text.Len() >= maxReadBytes
}

// readImage returns an image as a content block.
func readImage(r io.Reader, mimeType string, out readOutput) (Answer[readOutput], error) {
	out.Kind = "image"
	if out.Size > maxImageBytes {
		return Answer[readOutput]{Value: out, Text: fmt.Sprintf("%s is an image of %d bytes; up to %d are shown.", out.Path,
			out.Size, maxImageBytes)}, nil
	}
	data, err := io.ReadAll(io.LimitReader(r, maxImageBytes))
	if err != nil {
		return Answer[readOutput]{}, fileError("read", out.Path, err)
	}
	return Answer[readOutput]{Value: out, Text: fmt.Sprintf("%s is an image: %d bytes, %s.", out.Path, out.Size, mimeType),
		Blocks: []json.RawMessage{imageBlock(base64.StdEncoding.EncodeToString(data), mimeType)}}, nil
}

func imageBlock(data, mimeType string) json.RawMessage {
	return rawjson.Apply(nil, rawjson.Put(rawjson.Quote("image"), "type"), rawjson.Put(rawjson.Quote(data), "data"),
		rawjson.Put(rawjson.Quote(mimeType), "mimeType"))
}

// readResource reads the resource mcp://<server>/<uri>. rest is the part after mcp://.
func readResource(ctx context.Context, reader ResourceReader, call drawbridge.Call,
	rest string) (Answer[readOutput], error) {
	server, uri, ok := strings.Cut(rest, "/")
	switch {
	case !ok || server == "" || uri == "":
		return Answer[readOutput]{}, ToolError("A resource is mcp://<server>/<uri>.")
	case reader == nil:
		return Answer[readOutput]{}, ToolError("No servers are connected here, so " + mcpScheme + " cannot be read.")
	}
	result, err := reader(ctx, call, drawbridge.ServerID(server), uri)
	if err != nil {
		return Answer[readOutput]{}, err
	}
	raw, err := resourceContent(result.Raw)
	return Answer[readOutput]{Raw: raw}, err
}

// resourceContent converts the result of resources/read to the result of a tool: each content becomes an embedded
// resource.
func resourceContent(result json.RawMessage) (json.RawMessage, error) {
	var contents []json.RawMessage
	if err := json.Unmarshal(rawjson.Get(result, "contents"), &contents); err != nil {
		return nil, fmt.Errorf("read the contents of the resource: %w", err)
	}
	blocks := make([]json.RawMessage, 0, len(contents))
	for _, content := range contents {
		blocks = append(blocks, rawjson.Apply(nil, rawjson.Put(rawjson.Quote("resource"), "type"),
			rawjson.Put(content, "resource")))
	}
	return rawjson.Apply(nil, rawjson.Put(mustMarshal(blocks), "content"),
		rawjson.Put(mustMarshal(readOutput{Kind: "resource"}), "structuredContent")), nil
}
