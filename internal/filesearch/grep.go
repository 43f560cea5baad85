package filesearch

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"runtime"
	"sync"
)

const (
	// MaxFileSize is the size in bytes of the largest file that is searched.
	MaxFileSize = 2 << 20
	// binaryPrefix is how many bytes at the start of a file are examined: the file is binary if one of them is NUL.
	binaryPrefix = 4 << 10
)

// GrepOptions limit the result of Grep.
type GrepOptions struct {
	// MaxLines is the maximum number of matching lines to return. Context is the number of lines to return before and
	// after each match.
	MaxLines, Context int
	// FilesOnly stops at the first match of each file and returns no lines. CountOnly returns no lines.
	FilesOnly, CountOnly bool
}

// A Line is a line of a file.
type Line struct {
	Number int
	Text   string
	// Match is false for a line that is only context.
	Match bool
}

// A FileMatch is a file with its matching lines, and the context around them.
type FileMatch struct {
	Path  string
	Lines []Line
	// Count is the number of matching lines.
	Count int
}

// A GrepResult is the result of a search, in the order of the files.
type GrepResult struct {
	Files []FileMatch
	// Matches is the number of matching lines in Files. More is true if there are further matches.
	Matches int
	More    bool
	// Binary, Large and Unreadable count the files that were not searched, by reason.
	Binary, Large, Unreadable int
}

// skipReason is the reason why a file was not searched.
type skipReason int

const (
	searched skipReason = iota
	binaryFile
	largeFile
	unreadableFile
)

// A grepFile is the result of searching one file.
type grepFile struct {
	match  FileMatch
	reason skipReason
}

// Grep searches the files of a list, which are below a root. It returns the first matches in the order of the list. It
// returns an error only if ctx has ended.
func Grep(ctx context.Context, files Opener, root string, list []File, p *Pattern, o GrepOptions) (GrepResult, error) {
	var found GrepResult
	workers := max(2, runtime.GOMAXPROCS(0))
	// The files are searched in groups. If a group has enough matches, the later groups are not searched.
	const group = 2048
	for at := 0; at < len(list) && !found.More; at += group {
		part := list[at:min(at+group, len(list))]
		results := make([]grepFile, len(part))
		var work sync.WaitGroup
		next := make(chan int, len(part))
		for i := range part {
			next <- i
		}
		close(next)
		for range workers {
			work.Go(func() {
				buffer := make([]byte, 0, 64<<10)
				for i := range next {
					if ctx.Err() != nil {
						return
					}
					results[i], buffer = searchFile(files, root, part[i].Path, p, o, buffer)
				}
			})
		}
		work.Wait()
		if err := ctx.Err(); err != nil {
			return GrepResult{}, err
		}
		for _, r := range results {
			found.add(r, o)
		}
	}
	return found, nil
}

// add adds the result of a file, unless MaxLines has been reached.
func (g *GrepResult) add(r grepFile, o GrepOptions) {
	switch r.reason {
	case binaryFile:
		g.Binary++
	case largeFile:
		g.Large++
	case unreadableFile:
		g.Unreadable++
	}
	if r.match.Count == 0 {
		return
	}
	if g.Matches >= o.MaxLines {
		g.More = true
		return
	}
	if over := g.Matches + r.match.Count - o.MaxLines; over > 0 && !o.CountOnly {
		g.More = true
		r.match.cut(r.match.Count - over)
	}
	g.Matches += r.match.Count
	g.Files = append(g.Files, r.match)
}

// cut removes all matches after the first ones. It keeps the context before the first removed match.
func (m *FileMatch) cut(matches int) {
	seen := 0
	for i, l := range m.Lines {
		if l.Match {
			if seen == matches {
				m.Lines = m.Lines[:i]
				break
			}
			seen++
		}
	}
	m.Count = matches
}

// searchFile searches one file. It reads the file into buffer, and returns the buffer for the next file.
func searchFile(files Opener, root, rel string, p *Pattern, o GrepOptions, buffer []byte) (grepFile, []byte) {
	content, reason := readContent(files, filepath.Join(root, filepath.FromSlash(rel)), buffer)
	if reason != searched {
		return grepFile{reason: reason}, buffer
	}
	m := FileMatch{Path: rel}
	number, counted := 1, 0
	shown := 0 // m.Lines has the lines up to this number that are to be shown
	for at := 0; ; {
		start, end, ok := p.nextMatch(content, at)
		if !ok {
			break
		}
		number += bytes.Count(content[counted:start], []byte{'\n'})
		counted = start
		m.Count++
		if o.FilesOnly {
			break
		}
		if !o.CountOnly && m.Count <= o.MaxLines+1 {
			m.Lines, shown = appendLines(m.Lines, content, start, end, number, shown, o.Context)
		}
		if at = nextLine(content, end); at >= len(content) {
			break
		}
	}
	return grepFile{match: m}, content[:0]
}

// readContent reads a text file of at most MaxFileSize bytes. It uses buffer if the file fits.
func readContent(files Opener, path string, buffer []byte) ([]byte, skipReason) {
	f, err := files.Open(path)
	if err != nil {
		return nil, unreadableFile
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil || !info.Mode().IsRegular():
		return nil, unreadableFile
	case info.Size() > MaxFileSize:
		return nil, largeFile
	}
	if size := int(info.Size()) + 1; cap(buffer) < size {
		buffer = make([]byte, 0, max(size, 2*cap(buffer)))
	}
	content := buffer[:0]
	for {
		if len(content) == cap(content) {
			if len(content) > MaxFileSize {
				return nil, largeFile // the file is growing
			}
			content = append(content, 0)[:len(content)]
		}
		n, err := f.Read(content[len(content):cap(content)])
		content = content[:len(content)+n]
		if err == io.EOF || err == nil && int64(len(content)) == info.Size() { // no further read to see EOF
			break
		}
		if err != nil {
			return nil, unreadableFile
		}
	}
	if bytes.IndexByte(content[:min(len(content), binaryPrefix)], 0) >= 0 {
		return nil, binaryFile
	}
	return content, searched
}

// appendLines appends a matching line and its context to lines. It does not append a line twice: if the matching line
// is already there as context of an earlier match, it is marked as a match. shown is the number of the last appended
// line. appendLines returns the new lines and the new shown.
func appendLines(lines []Line, content []byte, start, end, number, shown, around int) ([]Line, int) {
	if number <= shown { // it is in the context of the previous match
		lines[len(lines)-1-(shown-number)].Match = true
	} else {
		first, at := number, start
		for first > shown+1 && number-first < around && at > 0 {
			at, _ = lineBounds(content, at-1)
			first--
		}
		for n := first; n < number; n++ {
			_, lineEnd := lineBounds(content, at)
			lines = append(lines, Line{n, string(content[at:lineEnd]), false})
			at = nextLine(content, lineEnd)
		}
		lines = append(lines, Line{number, string(content[start:end]), true})
		shown = number
	}
	at := end
	for n := number + 1; n <= number+around; n++ {
		if at = nextLine(content, at); at >= len(content) {
			break
		}
		var lineStart int
		lineStart, at = lineBounds(content, at)
		if n > shown {
			lines = append(lines, Line{n, string(content[lineStart:at]), false})
			shown = n
		}
	}
	return lines, shown
}
