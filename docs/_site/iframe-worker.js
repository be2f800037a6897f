// A page opened from a disk (file:) must not start a worker. There the search runs in a hidden frame instead,
// which answers by the same messages. Served pages keep their worker.
if (location.protocol === "file:") {
  class IFrameWorker extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.title = "search";
      this.frame = frame;
      this.ready = new Promise((done) => {
        frame.onload = () => {
          frame.onload = null;
          const inner = frame.contentWindow;
          inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
          const script = frame.contentDocument.createElement("script");
          script.src = String(url);
          script.onload = () => done(inner);
          frame.contentDocument.body.append(script);
        };
      });
      frame.srcdoc = "<!doctype html><title>search</title><body></body>";
      document.body.append(frame);
    }

    postMessage(data) {
      this.ready.then((inner) => inner.dispatchEvent(new inner.MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  }
  window.IFrameWorker = IFrameWorker;
  window.Worker = IFrameWorker;
}
