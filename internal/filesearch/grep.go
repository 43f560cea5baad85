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
	// binaryPrefix is how many bytes at the start of a file tell whether it is binary: one of them is NUL.
	binaryPrefix = 4 << 10
)

// GrepOptions bound a search for lines.
type GrepOptions struct {
	// MaxLines is how many matching lines are returned. Context is how many lines before and behind each.
	MaxLines, Context int
	// FilesOnly looks for one line of each file. CountOnly returns no lines.
	FilesOnly, CountOnly bool
}

// A Line is a line of a file.
type Line struct {
	Number int
	Text   string
	// Match is false for a line of the context.
	Match bool
}

// A FileMatch has the lines of a file that match, and those around them.
type FileMatch struct {
	Path  string
	Lines []Line
	// Count is the number of lines that match.
	Count int
}

// A GrepResult is the result of a search, in the order of the files.
type GrepResult struct {
	Files []FileMatch
	// Matches is the number of lines that match in Files. More is true if there are further ones.
	Matches int
	More    bool
	// Binary, Large and Unreadable count files that were not searched.
	Binary, Large, Unreadable int
}

// skipReason is why a file was not searched.
type skipReason int

const (
	searched skipReason = iota
	binaryFile
	largeFile
	unreadableFile
)

// A grepFile is the result of one file.
type grepFile struct {
	match  FileMatch
	reason skipReason
}

// Grep searches files below a root. It returns the first matches in the order of the files. The error is ctx's.
func Grep(ctx context.Context, files Opener, root string, list []File, p *Pattern, o GrepOptions) (GrepResult, error) {
	var found GrepResult
	workers := max(2, runtime.GOMAXPROCS(0))
	// The files are searched in groups, so that a search with many matches ends early.
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

// add adds the result of a file, unless there are enough.
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

// cut keeps the first matches, with the lines before the next one.
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

// searchFile searches one file. The buffer is used again.
func searchFile(files Opener, root, rel string, p *Pattern, o GrepOptions, buffer []byte) (grepFile, []byte) {
	content, reason := readContent(files, filepath.Join(root, filepath.FromSlash(rel)), buffer)
	if reason != searched {
		return grepFile{reason: reason}, buffer
	}
	m := FileMatch{Path: rel}
	number, counted := 1, 0
	shown := 0 // lines up to this number are in m.Lines
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

// readContent reads a text file of at most MaxFileSize bytes.
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
				return nil, largeFile // it grows
			}
			content = append(content, 0)[:len(content)]
		}
		n, err := f.Read(content[len(content):cap(content)])
		content = content[:len(content)+n]
		if err == io.EOF || err == nil && int64(len(content)) == info.Size() { // the usual end costs no other read
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

// appendLines appends a matching line with the lines around it that were not appended before. A line of the context
// behind an earlier match becomes a match.
func appendLines(lines []Line, content []byte, start, end, number, shown, around int) ([]Line, int) {
	if number <= shown { // it is in the context of the match before
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
