package tui

import "strings"

// A blockKind is the kind of a block of Markdown.
type blockKind int

const (
	textBlock blockKind = iota
	codeBlock
	tableBlock
)

// The limits of a block that has not ended. A longer one is divided, so that drawing it again stays cheap.
const (
	maxBlockLines = 100
	maxCodeLines  = 16
	maxBlockBytes = 16 << 10
)

// A block is a piece of Markdown that is rendered by itself. first is set unless it continues a block that was divided.
type block struct {
	kind  blockKind
	text  string
	info  string // the language of code
	first bool
}

// A splitter divides Markdown that arrives in pieces into blocks. It looks at each line once.
type splitter struct {
	line  strings.Builder // the line that has not ended
	lines []string        // the complete lines of the open block, with their line feeds
	size  int
	kind  blockKind
	fence string // the fence that ends the code
	info  string
	first bool
	blank bool // an empty line follows the open block
}

func newSplitter() *splitter { return &splitter{first: true} }

// add adds text and returns the blocks that are complete.
func (s *splitter) add(text string) (done []block) {
	for {
		i := strings.IndexByte(text, '\n')
		if i < 0 {
			s.line.WriteString(text)
			if s.line.Len() > maxBlockBytes {
				done = append(done, s.end()...)
				s.first = false
			}
			return done
		}
		s.line.WriteString(text[:i+1])
		text = text[i+1:]
		line := s.line.String()
		s.line.Reset()
		done = append(done, s.addLine(line)...)
	}
}

// addLine adds a complete line.
func (s *splitter) addLine(line string) (done []block) {
	bare := strings.TrimSpace(line)
	if s.fence != "" {
		if strings.HasPrefix(bare, s.fence) && strings.Trim(bare, s.fence[:1]) == "" {
			done = s.close()
			if s.first { // code without lines
				done = append(done, block{kind: codeBlock, info: s.info, first: true})
			}
			s.fence, s.first = "", true
			return done
		}
		s.append(line)
		if len(s.lines) >= maxCodeLines || s.size > maxBlockBytes {
			done = s.close()
			s.first = false
		}
		return done
	}
	if fence, info := openingFence(line); fence != "" {
		done = s.close()
		s.fence, s.info, s.kind, s.first = fence, info, codeBlock, true
		return done
	}
	if bare == "" {
		if s.kind == tableBlock || !s.isList() {
			done = s.close()
			s.first = true
		} else {
			s.append(line)
			s.blank = true
		}
		return done
	}
	if s.blank && !continuesList(line) || strings.HasPrefix(bare, "#") && len(line) > 0 && line[0] == '#' {
		done = s.close()
		s.first = true
	}
	s.blank = false
	if len(s.lines) == 1 && s.kind == textBlock && strings.Contains(s.lines[0], "|") && isDelimiterRow(line) {
		s.kind = tableBlock
	}
	s.append(line)
	if len(s.lines) >= maxBlockLines || s.size > maxBlockBytes {
		done = append(done, s.divide()...)
	}
	return done
}

func (s *splitter) append(line string) {
	s.lines = append(s.lines, line)
	s.size += len(line)
}

// divide ends a block that is too long. A table keeps its header for the rows that follow.
func (s *splitter) divide() []block {
	var header []string
	if s.kind == tableBlock {
		header = []string{s.lines[0], s.lines[1]}
	}
	kind := s.kind
	done := s.close()
	s.first = false
	if header != nil && len(header[0])+len(header[1]) < maxBlockBytes/2 {
		s.kind = kind
		s.append(header[0])
		s.append(header[1])
	}
	return done
}

// close returns the open block, if it has lines, and begins the next.
func (s *splitter) close() (done []block) {
	if len(s.lines) > 0 {
		done = []block{s.open("")}
		s.first = s.fence == ""
	}
	s.lines, s.size, s.kind, s.blank = nil, 0, textBlock, false
	if s.fence != "" {
		s.kind = codeBlock
	}
	return done
}

// open returns the block that is not complete, with the text of the line that has not ended.
func (s *splitter) open(line string) block {
	return block{kind: s.kind, text: strings.Join(s.lines, "") + line, info: s.info, first: s.first}
}

// rest returns what has arrived of the open block; ok is false if it has no text.
func (s *splitter) rest() (b block, ok bool) {
	line := s.line.String()
	return s.open(line), len(s.lines) > 0 || strings.TrimSpace(line) != "" && s.fence == "" || s.fence != ""
}

// end returns the last blocks. The splitter is then empty.
func (s *splitter) end() (done []block) {
	if line := s.line.String(); line != "" {
		s.line.Reset()
		done = s.addLine(line + "\n")
	}
	return append(done, s.close()...)
}

// isList reports whether the open block is a list or indented text, which may continue after an empty line.
func (s *splitter) isList() bool {
	return len(s.lines) > 0 && continuesList(s.lines[0])
}

// continuesList reports whether a line may belong to a list after an empty line.
func continuesList(line string) bool {
	if strings.HasPrefix(line, "  ") || strings.HasPrefix(line, "\t") {
		return true
	}
	rest := strings.TrimLeft(line, "0123456789")
	if rest != line && len(rest) > 1 && (rest[0] == '.' || rest[0] == ')') {
		return rest[1] == ' '
	}
	return len(line) > 1 && strings.ContainsRune("-*+", rune(line[0])) && line[1] == ' '
}

// openingFence returns the fence and the language of a line that begins code; empty if it does not.
func openingFence(line string) (fence, info string) {
	rest := strings.TrimLeft(line, " ")
	if len(line)-len(rest) > 3 || len(rest) < 3 || rest[0] != '`' && rest[0] != '~' {
		return "", ""
	}
	after := strings.TrimLeft(rest, rest[:1])
	fence = rest[:len(rest)-len(after)]
	if info = strings.TrimSpace(after); len(fence) < 3 || fence[0] == '`' && strings.Contains(info, "`") {
		return "", ""
	}
	info, _, _ = strings.Cut(info, " ")
	return fence, info
}
