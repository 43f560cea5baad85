package textfile

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"runtime"
	"sync"
)

const (
	// MaxFileSize is the size in bytes of the largest file that Grep searches. Larger files are skipped and counted.
	MaxFileSize = 2 << 20
	// binaryPrefix is the number of bytes at the start of a file that are examined. If one of them is NUL, the file is
	// binary and is not searched.
	binaryPrefix = 4 << 10
)

// GrepOptions determine which lines Grep returns, and how many.
type GrepOptions struct {
	// MaxLines is the maximum number of matching lines in the result. With FilesOnly each file counts as one line. With
	// CountOnly the lines of the last file are counted even if they exceed MaxLines. Context is the number of lines
	// before and after each matching line that are returned with it.
	MaxLines, Context int
	// FilesOnly returns only which files match: the search of a file ends at the first match. CountOnly returns only
	// the numbers of matching lines.
	FilesOnly, CountOnly bool
}

// A Line is a line of a file.
type Line struct {
	Number int
	Text   string
	// Match is false for a line that does not match and is returned as context of a match.
	Match bool
}

// A FileMatch is a file with at least one matching line. Lines are its matching lines and the lines around them, in the
// order of the file.
type FileMatch struct {
	Path  string
	Lines []Line
	// Count is the number of matching lines that the result counts for this file; with FilesOnly it is 1.
	Count int
}

// A GrepResult is the result of Grep. Files are in the order of the searched list.
type GrepResult struct {
	Files []FileMatch
	// Matches is the sum of Count in Files. More is true if there are further matches that are not in Files because of
	// MaxLines.
	Matches int
	More    bool
	// Binary, Large and Unreadable are the numbers of files that were not searched because they are binary, too large
	// or unreadable.
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

// Grep searches the files in list for lines that match p. The paths in list are relative to the directory root. It
// returns the first o.MaxLines matches in the order of the list. It returns an error only if ctx has ended; files that
// cannot be read are counted.
func Grep(ctx context.Context, files Opener, root string, list []File, p *Pattern, o GrepOptions) (GrepResult, error) {
	var found GrepResult
	workers := max(2, runtime.GOMAXPROCS(0))
	// The files are searched in groups, each by several goroutines. When MaxLines is reached in a group, the later
	// groups are not searched.
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

// add adds the result of searching one file to g. If MaxLines has been reached, it adds no matches and sets g.More.
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

// cut removes all but the first matches of m. matches is the number of matching lines that stay. Context lines before
// the first removed match stay too.
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

// searchFile searches the file at the path rel below root. It reads the file into buffer, and returns the buffer, which
// may have grown, for the next file.
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

// readContent returns the content of a file. If the file is binary, has more than MaxFileSize bytes or cannot be read,
// it returns the reason instead. It reads into buffer, and allocates memory only if buffer is too small.
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

// appendLines appends a matching line and its context to lines. The matching line has this number, and is content from
// start to end. around is the number of context lines before and after it. shown is the number of the last line that is
// already in lines. A line is not appended twice: a matching line that is already in lines as context is only marked as
// a match. appendLines returns the new values of lines and shown.
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
