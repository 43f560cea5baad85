package index

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// An EvalError is a user error: in a file of tools or questions, or in the name of an arm.
type EvalError struct{ text string }

// Error returns the text of the error.
func (e *EvalError) Error() string { return e.text }

// A toolRow is one line of a file of tools.
type toolRow struct {
	ID          string          `json:"id"`
	Server      string          `json:"server"`
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

// An EvalQuery is a question of an evaluation: one line of a file of questions.
type EvalQuery struct {
	ID    string `json:"id"`
	Query string `json:"query"`
	// Kind is a class of questions with its own score; it may be empty.
	Kind string `json:"kind"`
	// Gold contains the IDs of the needed tools. Groups replaces Gold if several tools are equally suitable: of each
	// group, one tool is needed.
	Gold   []string   `json:"gold"`
	Groups [][]string `json:"groups"`
}

// NeededGroups returns Groups, or else a group for each tool of Gold. One tool of each group is needed.
func (q EvalQuery) NeededGroups() [][]string {
	if len(q.Groups) > 0 {
		return q.Groups
	}
	var all [][]string
	for _, id := range q.Gold {
		all = append(all, []string{id})
	}
	return all
}

// ReadEvalTools reads a file of tools with one JSON object on each line. Its members are id, server, name, title,
// description and inputSchema; id and name are required. An [EvalError] names the file and the line.
func ReadEvalTools(name string, from io.Reader) ([]Document, error) {
	rows, err := readRows[toolRow](name, from, func(t toolRow) (string, error) {
		if t.Name == "" {
			return t.ID, errors.New("it has no name")
		}
		return t.ID, nil
	})
	all := make([]Document, len(rows))
	for i, t := range rows {
		all[i] = Document{ID: t.ID, Server: t.Server, Name: t.Name, Title: t.Title, Description: t.Description,
			Schema: t.InputSchema}
	}
	return all, err
}

// ReadEvalQueries reads a file of questions with one JSON object on each line. Its members are id, query, kind, gold
// and groups; id and query are required. An [EvalError] names the file and the line.
func ReadEvalQueries(name string, from io.Reader) ([]EvalQuery, error) {
	return readRows[EvalQuery](name, from, func(q EvalQuery) (string, error) {
		if q.Query == "" {
			return q.ID, errors.New("it has no query")
		}
		for _, group := range q.Groups {
			if len(group) == 0 {
				return q.ID, errors.New("one of its groups has no tool")
			}
		}
		return q.ID, nil
	})
}

// maxRowBytes is the maximum length of a line in bytes.
const maxRowBytes = 16 << 20

// readRows reads lines of JSON and skips empty lines. The function check validates a row and returns its ID.
func readRows[T any](name string, from io.Reader, check func(T) (id string, err error)) ([]T, error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxRowBytes)
	var rows []T
	at, lineOf := 0, map[string]int{}
	for lines.Scan() {
		at++
		text := bytes.TrimSpace(bytes.TrimPrefix(lines.Bytes(), []byte("\ufeff")))
		if len(text) == 0 {
			continue
		}
		var row T
		if text[0] != '{' {
			return nil, rowError(name, at, errors.New("the row is not a JSON object"))
		}
		if err := json.Unmarshal(text, &row); err != nil {
			return nil, rowError(name, at, jsonTypeError(err))
		}
		id, err := check(row)
		switch {
		case id == "":
			return nil, rowError(name, at, errors.New("it has no id"))
		case err != nil:
			return nil, rowError(name, at, err)
		case lineOf[id] > 0:
			return nil, rowError(name, at, fmt.Errorf("the id %q stands in line %d too", id, lineOf[id]))
		}
		lineOf[id] = at
		rows = append(rows, row)
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, rowError(name, at+1, fmt.Errorf("it is longer than %d bytes", maxRowBytes))
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", name, err)
	case len(rows) == 0:
		return nil, &EvalError{name + ": it has no rows"}
	}
	return rows, nil
}

// jsonTypeError returns a JSON error without names of Go types.
func jsonTypeError(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%s is of the wrong kind: %s", wrong.Field, wrong.Value)
	}
	return err
}

func rowError(name string, line int, err error) error {
	return &EvalError{fmt.Sprintf("%s:%d: %v", name, line, err)}
}
