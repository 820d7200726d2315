#!/usr/bin/env python3
"""Frame times of the explorer's map while it is moved and zoomed, in a headless browser without a graphics card.

    python bench/explorer.py INDEX.garlic --garlic target/release/garlic [--screenshots FOLDER]

Needs Chromium and its driver (Debian's packages chromium and chromium-driver) and selenium. Time is that between two calls of
requestAnimationFrame; 16.7 ms is a frame in time at 60 Hz.
"""

import argparse
import contextlib
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from selenium import webdriver

FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic", "--no-first-run"]
FLAGS += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]

RECORD = """
window.frames_seen = [];
window.recording = true;
const frame = (at) => { window.frames_seen.push(at); if (window.recording) requestAnimationFrame(frame); };
requestAnimationFrame(frame);
"""


@contextlib.contextmanager
def served(program, index):
    command = [program, "serve", "--listen", "127.0.0.1:0", index]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield child.stdout.readline().split()[-1].rstrip("/")
    finally:
        child.terminate()
        child.wait(60)


@contextlib.contextmanager
def browser(size, ratio):
    with tempfile.TemporaryDirectory() as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for flag in [*FLAGS, f"--user-data-dir={profile}", f"--window-size={size[0]},{size[1]}", f"--force-device-scale-factor={ratio}"]:
            options.add_argument(flag)
        driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
        try:
            yield driver
        finally:
            driver.quit()


def mouse(driver, kind, x, y, **more):
    driver.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": kind, "x": float(x), "y": float(y), **more})


def drag(driver, x, y):
    """Back and forth over the map with the button down, for some seconds."""
    mouse(driver, "mousePressed", x, y, button="left", buttons=1, clickCount=1)
    until, step = time.monotonic() + 3, 0
    while time.monotonic() < until:
        step += 0.04
        mouse(driver, "mouseMoved", x + 150 * np.sin(step), y + 90 * np.sin(1.7 * step), button="left", buttons=1)
    mouse(driver, "mouseReleased", x, y, button="left", clickCount=1)


def wheel(driver, x, y):
    """In and out again."""
    until, step = time.monotonic() + 3, 0
    while time.monotonic() < until:
        step += 1
        mouse(driver, "mouseWheel", x, y, deltaX=0, deltaY=-25 if step % 120 < 60 else 25)


def keys(driver, x, y):
    canvas = driver.find_element("id", "map")
    until = time.monotonic() + 3
    while time.monotonic() < until:
        canvas.send_keys("\ue014\ue015\ue012\ue013+-")


def measure(driver, act, x, y):
    driver.execute_script(RECORD)
    act(driver, x, y)
    frames = driver.execute_script("window.recording = false; return window.frames_seen")
    took = np.diff(frames)
    return f"{len(took) / (frames[-1] - frames[0]) * 1000:.0f} | {np.median(took):.1f} | {np.quantile(took, 0.95):.1f} | {took.max():.1f}"


def look(driver, url, name, options):
    def data(key):
        return int(driver.find_element("id", "map").get_attribute(f"data-{key}") or 0)

    def wait(done):
        until = time.monotonic() + 120
        while not done():
            if time.monotonic() > until:
                raise TimeoutError(driver.find_element("id", "status").text)
            time.sleep(0.01)

    started = time.monotonic()
    driver.get(url)
    wait(lambda: data("points") > 0)
    first = time.monotonic() - started
    points = driver.execute_async_script(
        "const done = arguments[0]; const name = document.getElementById('index').value;"
        "fetch(`/v1/indexes/${encodeURIComponent(name)}/explore/map`).then((a) => a.json()).then((map) => done(map.points))"
    )
    wait(lambda: data("loaded") == points)
    print(f"\n{name}: first points after {first:.2f} s, all {points:,} after {time.monotonic() - started:.2f} s\n")
    box = driver.find_element("id", "map").rect
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    print("| | frames a second | median ms | 95 % ms | longest ms |\n|---|---|---|---|---|")
    for what, act in (("dragged", drag), ("wheel", wheel), ("keyboard", keys)):
        driver.find_element("id", "map").send_keys("0")
        time.sleep(0.5)
        print(f"| {what} | {measure(driver, act, x, y)} |", flush=True)
    if options.screenshots:
        driver.find_element("id", "map").send_keys("0")
        time.sleep(0.5)
        driver.save_screenshot(str(options.screenshots / f"{name}.png"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("index")
    parser.add_argument("--garlic", default="target/release/garlic")
    parser.add_argument("--screenshots", type=Path)
    options = parser.parse_args()
    if options.screenshots:
        options.screenshots.mkdir(parents=True, exist_ok=True)
    with served(options.garlic, options.index) as url:
        for name, size, ratio in (("desktop", (1280, 820), 1), ("phone", (500, 900), 2)):
            with browser(size, ratio) as driver:
                look(driver, url, name, options)


if __name__ == "__main__":
    main()
