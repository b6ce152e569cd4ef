package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"os"
	"sort"
	"syscall"
	"time"

	"helm.sh/helm/v3/pkg/chart/loader"
)

// The frames of provisioner/chart_engine/frames.py: the lengths of a JSON text and of the files after it, then both.
type head struct{ Text, Following uint64 }

var jobs = bufio.NewReaderSize(os.Stdin, 1<<20)

// As Helm reads the files of a chart.
var byteOrderMark = []byte{0xEF, 0xBB, 0xBF}

// The next chart; ends this process where the parent has no more.
func read() job {
	var size head
	if binary.Read(jobs, binary.BigEndian, &size) != nil {
		os.Exit(0)
	}
	text, following := make([]byte, size.Text), make([]byte, size.Following)
	if _, err := io.ReadFull(jobs, text); err != nil {
		os.Exit(0)
	}
	if _, err := io.ReadFull(jobs, following); err != nil {
		os.Exit(0)
	}
	var given job
	var named struct{ Files [][2]json.RawMessage }
	if json.Unmarshal(text, &given) != nil || json.Unmarshal(text, &named) != nil {
		os.Exit(3)
	}
	for _, pair := range named.Files {
		var path string
		var length int
		if json.Unmarshal(pair[0], &path) != nil || json.Unmarshal(pair[1], &length) != nil {
			os.Exit(3)
		}
		data := bytes.TrimPrefix(following[:length], byteOrderMark)
		given.files = append(given.files, &loader.BufferedFile{Name: path, Data: data})
		following = following[length:]
	}
	sort.Slice(given.files, func(a, b int) bool { return given.files[a].Name < given.files[b].Name })
	return given
}

func write(message any) {
	var text bytes.Buffer
	if json.NewEncoder(&text).Encode(message) != nil {
		os.Exit(3)
	}
	var whole bytes.Buffer
	// Without files, the message has to say so.
	said := append(bytes.TrimSuffix(text.Bytes(), []byte("}\n")), []byte(`,"files":[]}`)...)
	binary.Write(&whole, binary.BigEndian, head{uint64(len(said)), 0})
	whole.Write(said)
	if _, err := os.Stdout.Write(whole.Bytes()); err != nil {
		os.Exit(0)
	}
}

func used() time.Duration {
	var usage syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
