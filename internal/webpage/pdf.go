package webpage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/confine"
	"github.com/drawbridge-mcp/drawbridge/internal/process"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/ledongthuc/pdf"
)

// PDF files are read by a process of their own: the library was not written for hostile files. The process has no
// network, no files of the person, little memory and little time, as far as the system supports that.
const (
	pdfReaderArgument = "drawbridge-read-pdf"
	pdfTimeout        = 20 * time.Second
	pdfMemory         = 1 << 30
	maxPDFText        = 4 << 20
)

// pdfReaderEnabled is true if this program calls RunIfPDFReader, so that running it again reads a PDF file. It is a fact
// about the process, written once.
var pdfReaderEnabled atomic.Bool

// RunIfPDFReader must be called first thing in main, after process.RunIfReaper. It returns at once, unless this process
// was started by this package to read a PDF file: then it does that and never returns.
func RunIfPDFReader() {
	if len(os.Args) != 2 || os.Args[1] != pdfReaderArgument {
		pdfReaderEnabled.Store(true)
		return
	}
	limitMemory(pdfMemory)
	if err := runPDFReader(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// runPDFReader reads a PDF file and writes its text.
func runPDFReader(in io.Reader, out io.Writer) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("the file is damaged")
		}
	}()
	body, err := io.ReadAll(io.LimitReader(in, MaxBytes))
	if err != nil {
		return err
	}
	text, err := pdfText(body)
	if err == nil {
		_, err = io.WriteString(out, text)
	}
	return err
}

// pdfText returns the text of a PDF file, with an empty line between pages.
func pdfText(body []byte) (string, error) {
	file, err := pdf.NewReader(bytes.NewReader(body), int64(len(body)))
	if err != nil {
		return "", err
	}
	var all strings.Builder
	for i := 1; i <= file.NumPage() && all.Len() < maxPDFText; i++ {
		if i > 1 {
			all.WriteString("\n\n")
		}
		appendPage(&all, glyphsOf(file.Page(i)))
	}
	return safetext.Truncate(strings.ToValidUTF8(all.String(), "\uFFFD"), maxPDFText, safetext.Bytes, ""), nil
}

// glyphsOf returns the glyphs of a page in their order. It drops those that the library adds after each text: a line
// feed, as the font shows it.
func glyphsOf(page pdf.Page) (kept []pdf.Text) {
	lineFeed := map[string]string{}
	for _, name := range page.Fonts() {
		font := page.Font(name)
		base := font.BaseFont()
		base = base[strings.Index(base, "+")+1:] // as the glyphs have it, without the mark of a subset
		lineFeed[base] = font.Encoder().Decode("\n")
	}
	all := page.Content().Text
	for i, g := range all {
		last := i == len(all)-1 || math.Abs(all[i+1].X-g.X-g.W) > 0.1 || all[i+1].Y != g.Y
		if added, ok := lineFeed[g.Font]; g.S == "\n" || ok && last && g.S == added {
			continue
		}
		kept = append(kept, g)
	}
	return kept
}

// appendPage appends the glyphs of a page in their order. A glyph on another height begins a line, and a gap is a space.
func appendPage(all *strings.Builder, glyphs []pdf.Text) {
	var last pdf.Text
	for i, g := range glyphs {
		size := max(g.FontSize, 1)
		switch gap := g.X - (last.X + last.W); {
		case i == 0:
		case math.Abs(g.Y-last.Y) > size/2:
			all.WriteString("\n")
			if last.Y-g.Y > 2*size {
				all.WriteString("\n") // a paragraph
			}
		case (gap > size/6 || gap < -size) && !strings.HasSuffix(last.S, " ") && !strings.HasPrefix(g.S, " "):
			all.WriteString(" ")
		}
		all.WriteString(g.S)
		last = g
	}
}

// readPDF returns the text of a PDF file, which another process reads.
func readPDF(ctx context.Context, body []byte) (text string, err error) {
	if !pdfReaderEnabled.Load() {
		return "", errors.New("this program reads no PDF files: it does not call gateway.RunReaperProcess first in main")
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	home, err := os.MkdirTemp("", "drawbridge-pdf-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(home)
	ctx, cancel := context.WithTimeout(ctx, pdfTimeout)
	defer cancel()
	userHome, _ := os.UserHomeDir() // without one nothing of it can be read
	p, err := process.Start(ctx, process.Spec{Command: self, Args: []string{pdfReaderArgument}, Dir: home,
		Env: []string{"GOMAXPROCS=1", "GOMEMLIMIT=512MiB"}, Grace: 100 * time.Millisecond,
		Confinement: &confine.Profile{Offline: true, Home: home, Dir: home, UserHome: userHome}})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, p.Stop(context.WithoutCancel(ctx))) }()
	stop := context.AfterFunc(ctx, func() {
		_ = p.Stdin().SetDeadline(time.Now())
		_ = p.Stdout().SetDeadline(time.Now())
	})
	defer stop()
	_, err = p.Stdin().Write(body)
	if err == nil {
		err = p.Stdin().Close()
	}
	if err == nil {
		var out []byte
		out, err = io.ReadAll(io.LimitReader(p.Stdout(), maxPDFText))
		text = string(out)
	}
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("read the PDF file: not done within %s", pdfTimeout)
	case err != nil && len(p.Stderr()) == 0:
		return "", fmt.Errorf("read the PDF file: %w", err)
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
	}
	if lines := p.Stderr(); len(lines) > 0 || p.Err() != nil {
		return "", fmt.Errorf("read the PDF file: %s", safetext.Line(strings.Join(lines[:min(len(lines), 1)], "")))
	}
	return text, nil
}
