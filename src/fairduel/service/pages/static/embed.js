// Shows a study on another site: <script src="https://…/static/embed.js" data-study="…" async></script>
{
  const script = document.currentScript;
  const page = new URL(`../vote/${encodeURIComponent(script.dataset.study)}`, script.src);
  const frame = document.createElement("iframe");
  frame.src = page;
  frame.title = "Vote";
  frame.style.cssText = "border: 0; width: 100%; height: 40rem";
  script.after(frame);
  addEventListener("message", ({ source, origin, data }) => {
    if (source === frame.contentWindow && origin === page.origin && Number.isFinite(data?.height))
      frame.style.height = `${Math.min(Math.max(data.height, 200), 5000)}px`;
  });
}
